// The last error of each thread, as cudaGetLastError reports it.
#pragma once

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// Remembers a failure for cudaGetLastError of this thread, and returns `status`.
int report(int status);

}  // namespace tidemark::phantom
