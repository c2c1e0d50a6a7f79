// Memory that was given back to the driver, as a recording shows it.
#pragma once

#include <cstdint>
#include <functional>

#include "store/store.h"

namespace tidemark {

/// Segments that were released together, and what came after it.
struct Release {
  const SegmentChange* first = nullptr;
  const SegmentChange* end = nullptr;   ///< behind the last one, changes of other devices among them
  const SegmentChange* next = nullptr;  ///< what was reserved next, nothing else in between; null: nothing was
  std::uint64_t reserved_before = 0;
  bool failure_next = false;  ///< a request failed next
};

/// Calls take(release, by_allocator) for each release of the device in order. `by_allocator`: malloc() made room for a
/// request, as the stacks or the limit show; otherwise the program emptied the cache.
void find_releases(const Store& store, std::uint8_t device, const std::function<void(const Release&, bool)>& take);

/// The same for sources without segments: where the allocator's own totals say that less is reserved.
void find_drops(const Store& store, std::uint8_t device, const std::function<void(const TotalsChange&, bool)>& take);

}  // namespace tidemark
