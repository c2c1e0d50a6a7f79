#include "loading/device_conversions.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "loading/conversion_kernels.h"

namespace tidemark {
namespace {

constexpr unsigned kThreads = 256;  // of a block

}  // namespace

DeviceConversions::~DeviceConversions() {
  if (module_ == nullptr || copies_.was_forked()) return;
  const cuda::Driver& driver = copies_.driver();
  const cuda::CurrentContext current(driver, copies_.context());
  driver.synchronize_stream(copies_.stream());
  driver.unload_module(module_);
}

Result<cuda::Function> DeviceConversions::kernel(const std::string& name) {
  const cuda::Driver& driver = copies_.driver();
  const std::lock_guard lock(mutex_);
  if (module_ == nullptr) {
    const auto status = driver.load_module(&module_, conversion_module().c_str());
    if (status != cuda::kSuccess) {
      module_ = nullptr;
      return driver.error("the conversions' kernels: cuModuleLoadData", status);
    }
  }
  cuda::Function& function = kernels_[name];
  if (function == nullptr) {
    const auto status = driver.find_function(&function, module_, name.c_str());
    if (status != cuda::kSuccess) {
      function = nullptr;
      return driver.error(fmt::format("{}: cuModuleGetFunction", name).c_str(), status);
    }
  }
  return function;
}

Result<void> DeviceConversions::begin(const ElementConversion& conversion, cuda::DevicePointer from,
                                      cuda::DevicePointer to, std::size_t elements) {
  if (elements == 0) return {};
  const std::uint64_t blocks = (elements + kThreads - 1) / kThreads;
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    return Error{fmt::format("{} elements are too many for one conversion", elements)};
  }
  const cuda::Driver& driver = copies_.driver();
  const cuda::CurrentContext current(driver, copies_.context());
  const auto function = kernel(conversion_kernel(conversion));
  if (!function) return function.error();
  std::uint64_t count = elements;
  float scale = conversion.scale;
  float added = addend(conversion);
  void* parameters[] = {&to, &from, &count, &scale, &added};
  const auto status = driver.launch(*function, static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, copies_.stream(),
                                    parameters, nullptr);
  if (status != cuda::kSuccess) return driver.error("cuLaunchKernel", status);
  return {};
}

}  // namespace tidemark
