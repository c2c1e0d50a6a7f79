// What a window of a longer recording begins with: the blocks that were alive then (LiveBlocks::lead_in), allocated at
// some time before. Their births are no part of the window's course.
#pragma once

#include <cstdint>

#include "store/store.h"

namespace tidemark {

struct LeadIn {
  std::uint64_t end_ns = 0;    ///< births before this time are of such blocks; 0: there are none
  std::uint64_t began_ns = 0;  ///< when the window began, since the beginning of the recording
  std::uint64_t whole_ns = 0;  ///< how long the recording was until the window's end
};

/// Of a file of a flight recorder, whose window begins at its time 0, or of a SlidingWindow, with the recording's
/// times.
[[nodiscard]] inline LeadIn lead_in_of(const Store& store) {
  if (store.window_began_ns) return {1, *store.window_began_ns, *store.window_began_ns + store.end_ns};
  if (store.pauses.empty() || store.pauses.front().begin_ns != 0 || store.live_changes.empty()) return {};
  const std::uint64_t end_ns = store.pauses.front().end_ns;
  if (store.live_changes.front().time_ns >= end_ns) return {};  // a program that began without being recorded
  return {end_ns, end_ns, store.end_ns};
}

}  // namespace tidemark
