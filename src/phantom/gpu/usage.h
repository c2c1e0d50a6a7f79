// What a planned program did that decides how far its plan can be trusted: results that it read, calls that had no
// answer, sizes that are estimates.
#pragma once

#include <string>

#include "phantom/gpu/usage_file.h"

namespace tidemark::phantom {

/// Counts a copy from a device to the host: what the program does with it depends on values that no kernel computed.
/// Lock-free, allocates nothing.
void count_read();

/// Counts a call that the phantom GPU has no answer for, and says its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

/// Counts an operation whose workspace is an estimate, or a kernel whose machine code is not known, once for each name;
/// says the first of a kind on stderr. Thread-safe.
void count_estimate(Estimate kind, const std::string& name);

}  // namespace tidemark::phantom
