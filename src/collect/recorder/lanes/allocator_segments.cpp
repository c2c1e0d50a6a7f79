#include "collect/recorder/lanes/allocator_segments.h"

#include <algorithm>

namespace tidemark {

std::optional<Event> AllocatorSegments::take(const DriverCallRecord& call, const Event& base) {
  const std::uint64_t* numbers = call.numbers;
  switch (call.call) {
    case ring::DriverCall::allocate:
      segments_[numbers[0]] = {call.device, numbers[1]};
      return std::nullopt;
    case ring::DriverCall::create:
      not_mapped_[numbers[0]] = call.device;
      return std::nullopt;
    case ring::DriverCall::map:  // memory of another process is not reserved here
      if (const auto memory = not_mapped_.extract(numbers[2]); !memory.empty())
        segments_[numbers[0]] = {memory.mapped(), numbers[1]};
      return std::nullopt;
    case ring::DriverCall::free:
      return released(unmap(numbers[0], 1), base);
    case ring::DriverCall::unmap:
      return released(unmap(numbers[0], numbers[1]), base);
    default:
      return std::nullopt;
  }
}

// One call may end several mappings of one device.
AllocatorSegments::Segment AllocatorSegments::unmap(std::uint64_t address, std::uint64_t bytes) {
  Segment all;
  const std::uint64_t end = address + std::min(bytes, ~std::uint64_t{0} - address);
  auto segment = segments_.lower_bound(address);
  while (segment != segments_.end() && segment->first < end) {
    all.device = segment->second.device;
    all.bytes += segment->second.bytes;
    segment = segments_.erase(segment);
  }
  return all;
}

std::optional<Event> AllocatorSegments::released(Segment segment, const Event& base) const {
  if (segment.device < 0 || segment.bytes == 0) return std::nullopt;
  const Totals& totals = totals_[static_cast<std::uint8_t>(segment.device)];
  if (totals.reserved < segment.bytes) return std::nullopt;
  Event event = base;
  event.kind = EventKind::release;
  event.device = {DeviceType::cuda, segment.device};
  event.has_totals = true;
  event.total_allocated = totals.allocated;
  event.total_reserved = totals.reserved - segment.bytes;
  return event;
}

}  // namespace tidemark
