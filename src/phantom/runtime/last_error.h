// The last error of each thread, as cudaGetLastError reports it, and the device that a thread has chosen.
#pragma once

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// Remembers a failure for cudaGetLastError of this thread, and returns `status`.
int report(int status);

/// The device that this thread has chosen; 0 until it has.
[[nodiscard]] int current_device();
void set_current_device(int device);

}  // namespace tidemark::phantom
