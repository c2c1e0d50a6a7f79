#include "loading/device_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr std::size_t kGranularity = 2ull << 20;  // the driver reserves memory in pages of this size

}  // namespace

DeviceBuffers::~DeviceBuffers() {
  const cuda::CurrentContext current(driver_, context_);
  for (const DeviceBuffer& buffer : idle_) free(buffer);
}

Result<DeviceBuffer> DeviceBuffers::take(std::size_t bytes, cuda::Stream stream) {
  const cuda::CurrentContext current(driver_, context_);
  DeviceBuffer taken;
  {
    const std::lock_guard lock(mutex_);
    auto fits = idle_.end();
    for (auto buffer = idle_.begin(); buffer != idle_.end(); ++buffer) {
      if (buffer->bytes >= bytes && (fits == idle_.end() || buffer->bytes < fits->bytes)) fits = buffer;
    }
    if (fits != idle_.end()) {
      taken = *fits;
      idle_.erase(fits);
    } else if (!idle_.empty()) {  // batches grow: a larger buffer takes the place of one that is too small
      free(idle_.back());
      idle_.pop_back();
    }
  }
  if (taken.address == 0) return allocate(bytes);
  if (const auto status = driver_.stream_wait_event(stream, taken.used, 0); status != cuda::kSuccess) {
    free(taken);
    return driver_.error("cuStreamWaitEvent", status);
  }
  return taken;
}

void DeviceBuffers::give_back(const DeviceBuffer& buffer, cuda::Stream stream) {
  const cuda::CurrentContext current(driver_, context_);
  if (driver_.record_event(buffer.used, stream) != cuda::kSuccess) {
    free(buffer);
    return;
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(buffer);
}

Result<DeviceBuffer> DeviceBuffers::allocate(std::size_t bytes) {
  DeviceBuffer buffer;
  buffer.bytes = (std::max<std::size_t>(bytes, 1) + kGranularity - 1) / kGranularity * kGranularity;
  auto status = driver_.alloc(&buffer.address, buffer.bytes);
  if (status != cuda::kSuccess) {
    return driver_.error(fmt::format("{} bytes for a batch: cuMemAlloc", buffer.bytes).c_str(), status);
  }
  for (cuda::Event* event : {&buffer.used, &buffer.ready}) {
    status = driver_.create_event(event, cuda::kEventDisableTiming);
    if (status != cuda::kSuccess) {
      free(buffer);
      return driver_.error("cuEventCreate", status);
    }
  }
  return buffer;
}

void DeviceBuffers::free(const DeviceBuffer& buffer) const {
  if (buffer.used != nullptr) driver_.synchronize_event(buffer.used);
  driver_.free(buffer.address);
  if (buffer.used != nullptr) driver_.destroy_event(buffer.used);
  if (buffer.ready != nullptr) driver_.destroy_event(buffer.ready);
}

}  // namespace tidemark
