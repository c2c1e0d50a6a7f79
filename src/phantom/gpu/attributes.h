// Device attributes and the texts of errors, which the runtime and the driver number alike.
#pragma once

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// cudaDeviceAttr / CUdevice_attribute of the profile, of a device of this process; 0 for what the profile does not
/// have.
[[nodiscard]] int device_attribute(int attribute, int device);

// Devices numbered as the machine has them (visible_devices.h):

/// The 16 bytes by which runtime and driver tell devices apart.
void write_uuid(char* uuid, int device);
/// "0000:01:00.0", at most `length` bytes with the zero at its end.
void write_pci_bus_id(char* text, int length, int device);

/// "cudaErrorMemoryAllocation" and "out of memory"; for numbers that the phantom GPU never returns, a general text.
[[nodiscard]] const char* status_name(int status);
[[nodiscard]] const char* status_text(int status);

/// In the runtime: remembers a failure for cudaGetLastError of this thread, and returns `status`.
int report(int status);

}  // namespace tidemark::phantom
