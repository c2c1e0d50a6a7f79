// Device attributes and error strings, with the same numbers in the runtime and the driver.
#pragma once

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// cudaDeviceAttr / CUdevice_attribute from the profile, for a device of this process; 0 if the profile does not have
/// it.
[[nodiscard]] int device_attribute(int attribute, int device);

// Devices are numbered as in the machine (visible_devices.h):

/// The 16 bytes by which runtime and driver identify devices.
void write_uuid(char* uuid, int device);
/// "0000:01:00.0", at most `length` bytes including the terminating zero.
void write_pci_bus_id(char* text, int length, int device);

/// "cudaErrorMemoryAllocation" and "out of memory"; a general text for numbers that the phantom GPU never returns.
[[nodiscard]] const char* status_name(int status);
[[nodiscard]] const char* status_text(int status);

/// In the runtime: stores a failure for cudaGetLastError of this thread, and returns `status`.
int report(int status);

}  // namespace tidemark::phantom
