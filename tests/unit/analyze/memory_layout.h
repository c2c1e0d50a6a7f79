// A GPU whose memory is laid out by hand: segments, blocks and failed requests, for tests of what looks at them.
#pragma once

#include <cstdint>
#include <utility>

#include "store/builder.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {

/// Which stream and pool: indexes into Store::streams (handles 0 and 7) and Store::pools (default and (0, 1)).
struct Where {
  std::uint16_t stream = 0;
  std::uint16_t pool = 0;
};

/// One GPU; times count up by themselves, in ms. Addresses are the test's choice.
class MemoryLayout {
 public:
  void reserve(std::uint64_t address, std::uint64_t size, bool expandable = false, Where where = {}) {
    segment(address, size, expandable, true, where);
  }
  void release(std::uint64_t address, std::uint64_t size, bool expandable = false) {
    segment(address, size, expandable, false, {});
  }
  SlotId allocate(std::uint64_t address, std::uint64_t size, std::uint64_t requested, StackId stack = {},
                  Where where = {}) {
    Event event = next(EventKind::allocate);
    event.slot = SlotId{slots_++};
    event.address = address;
    event.size = size;
    event.stack = stack;
    allocated_ += size;
    builder_.add(with_totals(event), {requested, where.stream, where.pool});
    totals();
    return event.slot;
  }
  void free(SlotId slot, std::uint64_t size, bool held_back = false) {
    Event event = next(EventKind::free);
    event.slot = slot;
    event.size = size;
    allocated_ -= size;
    builder_.add(with_totals(event), BlockDetails{});
    if (held_back) {
      pending_ += size;
      builder_.defer_free(slot);
    }
    totals();
  }
  void complete(SlotId slot, std::uint64_t size) {
    next(EventKind::free);
    pending_ -= size;
    builder_.complete(now_, slot);
    totals();
  }
  void fail(std::uint64_t requested, std::uint64_t device_free, StackId stack = {}, Where where = {}) {
    Event event = next(EventKind::out_of_memory);
    event.size = requested;
    event.stack = stack;
    OutOfMemoryDetails details;
    details.device_free = device_free;
    details.stream = where.stream;
    details.pool = where.pool;
    builder_.add_out_of_memory(with_totals(event), details);
  }
  Store finish(const Definitions& definitions = {}) {
    Store store = std::move(builder_).finish("layout", definitions);
    store.streams = {0, 7};
    store.pools = {{0, 0}, {0, 1}};
    return store;
  }

 private:
  Event next(EventKind kind) {
    Event event;
    event.kind = kind;
    event.device = kGpu;
    event.time_ns = now_ += 1'000'000;
    return event;
  }
  Event with_totals(Event event) const {
    event.has_totals = true;
    event.total_allocated = allocated_;
    event.total_reserved = reserved_;
    return event;
  }
  void totals() { builder_.add_totals(kGpu, now_, {allocated_ + pending_, reserved_}); }
  void segment(std::uint64_t address, std::uint64_t size, bool expandable, bool reserved, Where where) {
    next(EventKind::allocate);
    reserved_ = reserved ? reserved_ + size : reserved_ - size;
    SegmentChange change;
    change.address = address;
    change.size = size;
    change.stream = where.stream;
    change.pool = where.pool;
    change.expandable = expandable;
    change.reserved = reserved;
    builder_.add_segment_change(kGpu, now_, change);
    totals();
  }

  StoreBuilder builder_;
  std::uint64_t now_ = 0;
  std::uint32_t slots_ = 0;
  std::uint64_t allocated_ = 0, reserved_ = 0, pending_ = 0;
};

}  // namespace tidemark::testing
