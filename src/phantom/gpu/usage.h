// What a planned program did that decides how far its plan can be trusted: results that it read, calls that had no
// answer, sizes that are estimates.
#pragma once

#include <string>

namespace tidemark::phantom {

/// Counts a copy from a device to the host: what the program does with it depends on values that no kernel computed.
/// Lock-free, allocates nothing.
void count_read();

/// Counts a call that the phantom GPU has no answer for, and says its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

/// Counts an operation whose workspace is an estimate, once for each name, and says the first one's on stderr.
/// Thread-safe.
void count_estimated_workspace(const std::string& operation);

}  // namespace tidemark::phantom
