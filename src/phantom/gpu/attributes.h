// Device attributes and the texts of errors, which the runtime and the driver number alike.
#pragma once

namespace tidemark::phantom {

/// cudaDeviceAttr / CUdevice_attribute of the profile; 0 for what the profile does not have.
[[nodiscard]] int device_attribute(int attribute, int device);

/// "cudaErrorMemoryAllocation" and "out of memory"; for numbers that the phantom GPU never returns, a general text.
[[nodiscard]] const char* status_name(int status);
[[nodiscard]] const char* status_text(int status);

}  // namespace tidemark::phantom
