#include "inprocess/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace tidemark::cuda {

namespace {

/// The name of the first missing function, or null.
const char* look_up(void* library, Driver& driver) {
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  find(driver.init, "cuInit");
  find(driver.device_count, "cuDeviceGetCount");
  find(driver.device, "cuDeviceGet");
  find(driver.retain_primary_context, "cuDevicePrimaryCtxRetain");
  find(driver.release_primary_context, "cuDevicePrimaryCtxRelease_v2");
  find(driver.current_context, "cuCtxGetCurrent");
  find(driver.set_current_context, "cuCtxSetCurrent");
  find(driver.host_alloc, "cuMemHostAlloc");
  find(driver.host_free, "cuMemFreeHost");
  find(driver.alloc, "cuMemAlloc_v2");
  find(driver.free, "cuMemFree_v2");
  find(driver.create_stream, "cuStreamCreate");
  find(driver.destroy_stream, "cuStreamDestroy_v2");
  find(driver.synchronize_stream, "cuStreamSynchronize");
  find(driver.stream_wait_event, "cuStreamWaitEvent");
  find(driver.create_event, "cuEventCreate");
  find(driver.destroy_event, "cuEventDestroy_v2");
  find(driver.record_event, "cuEventRecord");
  find(driver.synchronize_event, "cuEventSynchronize");
  find(driver.copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(driver.load_module, "cuModuleLoadData");
  find(driver.unload_module, "cuModuleUnload");
  find(driver.find_function, "cuModuleGetFunction");
  find(driver.launch, "cuLaunchKernel");
  find(driver.memory_info, "cuMemGetInfo_v2");
  find(driver.error_name, "cuGetErrorName");
  return missing;
}

Result<const Driver*> find_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays loaded: it may have started threads
  if (library == nullptr) return Error{fmt::format("there is no CUDA driver here: {}", ::dlerror())};
  static Driver driver;
  if (const char* missing = look_up(library, driver); missing != nullptr) {
    return Error{fmt::format("the CUDA driver has no {}: it is older than CUDA 11", missing)};
  }
  if (const Status status = driver.init(0); status != kSuccess) return driver.error("cuInit", status);
  int count = 0;
  if (const Status status = driver.device_count(&count); status != kSuccess) {
    return driver.error("cuDeviceGetCount", status);
  }
  if (count == 0) return Error{"the CUDA driver has no device"};
  return static_cast<const Driver*>(&driver);
}

}  // namespace

Error Driver::error(const char* function, Status status) const {
  const char* name = nullptr;
  if (error_name == nullptr || error_name(status, &name) != kSuccess || name == nullptr) name = "error";
  return Error{fmt::format("{}: {} ({})", function, name, status)};
}

Result<const Driver*> driver() {
  static const Result<const Driver*> found = find_driver();
  return found;
}

CurrentContext::CurrentContext(const Driver& driver, Context context) : driver_(driver) {
  driver_.current_context(&before_);
  driver_.set_current_context(context);
}

CurrentContext::~CurrentContext() {
  driver_.set_current_context(before_);
}

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
