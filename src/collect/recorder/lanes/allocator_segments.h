// The segments of PyTorch's caching allocator, derived from its calls of CUDA. The allocator reports the reserved total
// only with each block; memory that it releases without one, as in torch.cuda.empty_cache(), follows from these calls.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "collect/recorder/lanes/driver_memory.h"
#include "trace/event.h"

namespace tidemark {

/// Takes events and calls of all threads in the order of time. Memory grows with the live segments. Not thread-safe.
class AllocatorSegments {
 public:
  /// Updates the totals that the allocator reports.
  void see(const Event& event) {
    if (event.has_totals && event.device.type == DeviceType::cuda && event.device.index >= 0)
      totals_[static_cast<std::uint8_t>(event.device.index)] = {event.total_allocated, event.total_reserved};
  }

  /// The release event of a call; std::nullopt if the call took memory, or released an unknown segment. `base` has its
  /// time and thread.
  std::optional<Event> take(const DriverCallRecord& call, const Event& base);

 private:
  struct Totals {
    std::uint64_t allocated = 0;
    std::uint64_t reserved = 0;
  };
  struct Segment {
    std::int8_t device = -1;
    std::uint64_t bytes = 0;
  };

  std::optional<Event> released(Segment segment, const Event& base) const;
  Segment unmap(std::uint64_t address, std::uint64_t bytes);

  std::array<Totals, 128> totals_ = {};                        // by the index of the device
  std::map<std::uint64_t, Segment> segments_;                  // by address; each mapped part of an expandable segment
  std::unordered_map<std::uint64_t, std::int8_t> not_mapped_;  // device of physical memory, by handle
};

}  // namespace tidemark
