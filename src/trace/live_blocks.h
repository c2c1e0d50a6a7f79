// The blocks alive at one time, and their encoding at the beginning of a recording: the initial events of every window
// of a longer recording.
//
// A window begins with the events of a pause from time 0 to its beginning. Between the two are the blocks that are
// alive at its end, as they were allocated (docs/format.md, "Windows").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/address_map.h"
#include "trace/event.h"

namespace tidemark {

/// Takes events in order, each in O(1); its memory grows with the blocks alive at one time (some 130 bytes each). Ids
/// in events are kept as they are. Not thread-safe.
class LiveBlocks {
 public:
  /// The latest totals of a device's allocator. Devices whose allocator reports none are left out.
  struct Totals {
    Device device;
    std::uint64_t allocated = 0;
    std::uint64_t reserved = 0;
  };

  void add(const Event& event) {
    switch (event.kind) {
      case EventKind::allocate:
        take(event.device, event.address);  // as the writer does: a free that was not seen
        insert(event);
        break;
      case EventKind::free:
        take(event.device, event.address);
        break;
      case EventKind::pause:
      case EventKind::resume:
        paused_ = event.kind == EventKind::pause;
        return;
      case EventKind::out_of_memory:
      case EventKind::release:
        break;
    }
    if (event.has_totals) totals_of(event.device) = {event.device, event.total_allocated, event.total_reserved};
  }

  [[nodiscard]] std::size_t count() const { return map_.count(); }
  [[nodiscard]] const std::vector<Totals>& totals() const { return totals_; }
  /// The program has switched recording off, and not on again.
  [[nodiscard]] bool paused() const { return paused_; }

  /// Gives the allocations of the live blocks to `visit`, in their order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::uint32_t at = oldest_; at != kNone; at = blocks_[at].next) visit(blocks_[at].event);
  }

  /// Visits the initial events of a recording that begins at `begin_ns`: a pause from 0 on, the live blocks, and the
  /// end of the pause; then the beginning of another one if the program has paused. A device's current totals come with
  /// its last block. Events are in order of time, and none is later than `begin_ns`.
  template <typename Visit>
  void lead_in(std::uint64_t begin_ns, const Visit& visit) const {
    std::vector<std::uint32_t> last(totals_.size(), kNone);
    for (std::uint32_t at = oldest_; at != kNone; at = blocks_[at].next) {
      if (const std::size_t index = find_totals(blocks_[at].event.device); index < last.size()) last[index] = at;
    }
    Event pause;
    pause.kind = EventKind::pause;
    visit(pause);
    for (std::uint32_t at = oldest_; at != kNone; at = blocks_[at].next) {
      Event event = blocks_[at].event;
      event.time_ns = std::min(event.time_ns, begin_ns);
      event.has_totals = false;
      event.total_allocated = event.total_reserved = 0;
      if (const std::size_t index = find_totals(event.device); index < last.size() && last[index] == at) {
        event.has_totals = true;
        event.total_allocated = totals_[index].allocated;
        event.total_reserved = totals_[index].reserved;
      }
      visit(event);
    }
    Event resume;
    resume.kind = EventKind::resume;
    resume.time_ns = begin_ns;
    visit(resume);
    pause.time_ns = begin_ns;
    if (paused_) visit(pause);
  }

 private:
  static constexpr std::uint32_t kNone = AddressMap::kAbsent;

  // Linked in order of allocation; free entries by `next`.
  struct Block {
    Event event;
    std::uint32_t before = kNone;
    std::uint32_t next = kNone;
  };

  static std::uint32_t key(Device device) {
    return std::uint32_t{static_cast<std::uint8_t>(device.type)} << 8 | static_cast<std::uint8_t>(device.index);
  }
  std::uint32_t& next_of(std::uint32_t at) { return at == kNone ? oldest_ : blocks_[at].next; }
  std::uint32_t& before_of(std::uint32_t at) { return at == kNone ? newest_ : blocks_[at].before; }

  void insert(const Event& event) {
    std::uint32_t at = free_;
    if (at == kNone) {
      at = static_cast<std::uint32_t>(blocks_.size());
      blocks_.emplace_back();
    } else {
      free_ = blocks_[at].next;
    }
    blocks_[at] = {event, newest_, kNone};
    next_of(newest_) = at;
    newest_ = at;
    map_.insert(event.address, key(event.device), at);
  }
  void take(Device device, std::uint64_t address) {
    const std::uint32_t at = map_.take(address, key(device));
    if (at == kNone) return;
    const Block& block = blocks_[at];
    next_of(block.before) = block.next;
    before_of(block.next) = block.before;
    blocks_[at].next = free_;
    free_ = at;
  }
  [[nodiscard]] std::size_t find_totals(Device device) const {
    const auto found =
        std::find_if(totals_.begin(), totals_.end(), [&](const Totals& totals) { return totals.device == device; });
    return static_cast<std::size_t>(found - totals_.begin());
  }
  Totals& totals_of(Device device) {
    const std::size_t index = find_totals(device);
    return index < totals_.size() ? totals_[index] : totals_.emplace_back();
  }

  AddressMap map_;
  std::vector<Block> blocks_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t free_ = kNone;
  std::vector<Totals> totals_;  // few: by device
  bool paused_ = false;
};

}  // namespace tidemark
