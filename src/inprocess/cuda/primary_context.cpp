#include "inprocess/cuda/primary_context.h"

#include <fmt/format.h>

#include <utility>

namespace tidemark::cuda {

Result<PrimaryContext> PrimaryContext::retain(const Driver& driver, int ordinal) {
  int device = -1;
  if (const Status status = driver.device(&device, ordinal); status != kSuccess) {
    return driver.error(fmt::format("device {}: cuDeviceGet", ordinal).c_str(), status);
  }
  Context context = nullptr;
  if (const Status status = driver.retain_primary_context(&context, device); status != kSuccess) {
    return driver.error("cuDevicePrimaryCtxRetain", status);
  }
  return PrimaryContext(driver, device, context);
}

PrimaryContext::PrimaryContext(PrimaryContext&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)), device_(other.device_), context_(other.context_) {}

PrimaryContext::~PrimaryContext() {
  if (driver_ != nullptr) driver_->release_primary_context(device_);
}

}  // namespace tidemark::cuda
