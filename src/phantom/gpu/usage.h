// What a planned program did that decides how far its plan can be trusted: results that it read, calls that had no
// answer.
#pragma once

#include <cstddef>

namespace tidemark::phantom {

/// Counts a copy from a device to the host: what the program does with it depends on values that no kernel computed.
/// Lock-free, allocates nothing.
void count_read(std::size_t bytes);

/// Counts a call that the phantom GPU has no answer for, and says its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

}  // namespace tidemark::phantom
