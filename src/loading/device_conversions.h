// Converts arrays on a device, on the stream of the copies.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"
#include "loading/element_conversion.h"
#include "loading/host_to_device.h"

namespace tidemark {

/// A module with a kernel for each conversion. Its parameters: `to`, `from` and the number of elements, of 64 bits
/// each; the scale and the addend, float32. A thread converts an element.
[[nodiscard]] std::string conversion_module();
/// Name of the kernel for a conversion that converted_bytes() accepts.
[[nodiscard]] std::string conversion_kernel(const ElementConversion& conversion);

/// Any thread. The kernels are loaded when the first array is converted.
class DeviceConversions {
 public:
  /// `copies` outlives it.
  explicit DeviceConversions(const HostToDevice& copies) : copies_(copies) {}
  /// Waits for the stream; not in a forked child.
  ~DeviceConversions();
  DeviceConversions(const DeviceConversions&) = delete;
  DeviceConversions& operator=(const DeviceConversions&) = delete;

  /// Starts converting `elements` from one place on the device to another, without overlap. converted_bytes() must
  /// accept the conversion.
  [[nodiscard]] Result<void> begin(const ElementConversion& conversion, cuda::DevicePointer from,
                                   cuda::DevicePointer to, std::size_t elements);

 private:
  [[nodiscard]] Result<cuda::Function> kernel(const std::string& name);

  const HostToDevice& copies_;
  std::mutex mutex_;
  cuda::Module module_ = nullptr;
  std::map<std::string, cuda::Function> kernels_;
};

}  // namespace tidemark
