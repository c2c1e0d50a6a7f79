#include "simulate/releases.h"

#include <algorithm>
#include <vector>

#include "allocator/rules.h"
#include "base/saturating.h"

namespace tidemark {
namespace {

// Walks over the segments of one device.
class ReleaseFinder {
 public:
  ReleaseFinder(const Store& store, std::uint8_t device) : store_(store), device_(device) {
    for (const OutOfMemory& failure : store.out_of_memory) {
      if (failure.device == device) failures_.push_back(&failure);
    }
    const auto settings = store.source.allocator_settings;
    collects_ = settings && settings->garbage_collection_threshold.value_or(0) > 0;
  }

  template <typename Take>
  void find(const Take& take) {
    std::uint64_t reserved = 0;
    const auto& changes = store_.segment_changes;
    for (std::size_t index = 0; index < changes.size(); ++index) {
      const SegmentChange& change = changes[index];
      if (change.device != device_) continue;
      if (change.reserved) {
        reserved = saturating_add(reserved, change.size);
        continue;
      }
      Release release{&change, nullptr, nullptr, reserved, false};
      std::size_t next = index;
      while (next < changes.size() && same_place(changes[next], change) && !changes[next].reserved) {
        reserved = saturating_subtract(reserved, changes[next].size);
        ++next;
      }
      release.end = changes.data() + next;
      if (next < changes.size() && same_place(changes[next], change)) release.next = &changes[next];
      const auto failure = std::lower_bound(
          failures_.begin(), failures_.end(), next,
          [](const OutOfMemory* each, std::size_t position) { return each->segment_changes < position; });
      release.failure_next = failure != failures_.end() && (*failure)->segment_changes == next &&
                             (*failure)->change_count == change.change_count;
      take(release, by_allocator(release));
      index = next - 1;
    }
  }

 private:
  [[nodiscard]] bool same_place(const SegmentChange& change, const SegmentChange& first) const {
    return change.device == device_ && change.change_count == first.change_count;
  }

  // Whether malloc() released it to make room, not the program.
  [[nodiscard]] bool by_allocator(const Release& release) const {
    if (release.failure_next) return true;
    if (release.next == nullptr) return false;
    if (release.first->stack.valid() && release.next->stack.valid()) return release.first->stack == release.next->stack;
    const std::uint64_t peak = store_.devices[device_].peak_reserved_bytes.value_or(0);
    return collects_ || saturating_add(release.reserved_before, release.next->size) > peak;
  }

  const Store& store_;
  const std::uint8_t device_;
  std::vector<const OutOfMemory*> failures_;
  bool collects_ = false;
};

}  // namespace

void find_releases(const Store& store, std::uint8_t device, const std::function<void(const Release&, bool)>& take) {
  ReleaseFinder(store, device).find(take);
}

void find_drops(const Store& store, std::uint8_t device, const std::function<void(const TotalsChange&, bool)>& take) {
  std::uint64_t reserved = 0;
  const std::uint64_t peak = store.devices[device].peak_reserved_bytes.value_or(0);
  for (const TotalsChange& change : store.totals_changes) {
    if (change.device != device) continue;
    if (change.reserved < reserved) {
      bool by_allocator = false;
      if (change.with_live_change) {
        const LiveChange& live = store.live_changes[change.change_count - 1];
        const std::uint64_t size = store.blocks.size[live.block.value];
        by_allocator = live.birth && saturating_add(reserved, pytorch::get_allocation_size(size)) > peak;
      }
      take(change, by_allocator);
    }
    reserved = change.reserved;
  }
}

}  // namespace tidemark
