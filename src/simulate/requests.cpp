#include "simulate/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/rules.h"
#include "analyze/common/moment.h"
#include "base/arithmetic.h"

namespace tidemark {

namespace {

constexpr std::uint16_t kOtherDevice = 0xFFFF;
constexpr std::size_t kMaxSimulatedDevices = 64;  // as many phantom GPUs as there can be

// Events between two changes of the live set.
struct Between {
  enum class Kind : std::uint8_t { completion, pool_released, empty_cache, moment, failed };
  std::uint64_t change_count = 0;
  std::uint64_t time_ns = 0;
  Kind kind = Kind::completion;
  std::uint16_t device = 0;
  std::uint64_t index = 0;  // of the block, pool or failure
};

bool of_caching_allocator(const DeviceSummary& summary) {
  return (summary.device.type == DeviceType::cuda || summary.device.type == DeviceType::hip) &&
         summary.allocation_count != 0;
}

class Visitor {
 public:
  Visitor(const Store& store, const Requests& requests) : store_(store), number_(store.devices.size(), kOtherDevice) {
    for (std::size_t number = 0; number < requests.devices.size(); ++number) {
      number_[requests.devices[number].index] = static_cast<std::uint16_t>(number);
      gather(requests.devices[number].index, static_cast<std::uint16_t>(number));
    }
    std::stable_sort(between_.begin(), between_.end(), [](const Between& left, const Between& right) {
      return std::tie(left.change_count, left.time_ns, left.kind) <
             std::tie(right.change_count, right.time_ns, right.kind);
    });
    std::sort(held_back_.begin(), held_back_.end());
  }

  void visit(const std::function<bool(const Request&)>& take) {
    auto between = between_.begin();
    for (std::uint64_t index = 0; index <= store_.live_changes.size(); ++index) {
      for (; between != between_.end() && between->change_count <= index; ++between) {
        if (!take(request_of(*between))) return;
      }
      if (index == store_.live_changes.size()) return;
      const LiveChange& change = store_.live_changes[index];
      const std::uint32_t block = change.block.value;
      if (number_[store_.blocks.device[block]] == kOtherDevice) continue;
      const bool waits = !change.birth && std::binary_search(held_back_.begin(), held_back_.end(), block);
      if (!waits && !take(block_request(change.birth, change.time_ns, block))) return;
    }
  }

 private:
  void gather(std::uint8_t device, std::uint16_t number) {
    const auto add = [&](std::uint64_t change_count, std::uint64_t time_ns, Between::Kind kind, std::uint64_t index) {
      between_.push_back({change_count, time_ns, kind, number, index});
    };
    const DeviceSummary& summary = store_.devices[device];
    add(summary.peak_change_count, summary.peak_allocated_at_ns.value_or(0), Between::Kind::moment, 0);
    for (const PendingFree& free : store_.pending_frees) {
      if (store_.blocks.device[free.block.value] != device) continue;
      held_back_.push_back(free.block.value);
      if (free.until_ns == PendingFree::kEnd) continue;
      add(free.until_change_count, free.until_ns, Between::Kind::completion, free.block.value);
    }
    for (std::size_t index = 0; index < store_.out_of_memory.size(); ++index) {
      const OutOfMemory& failure = store_.out_of_memory[index];
      if (failure.device == device) add(failure.change_count, failure.time_ns, Between::Kind::failed, index);
    }
    if (store_.segment_changes.empty()) {
      find_drops(store_, device, [&](const TotalsChange& change, bool by_allocator) {
        const std::uint64_t before = change.change_count - (change.with_live_change ? 1 : 0);
        if (!by_allocator) add(before, change.time_ns, Between::Kind::empty_cache, 0);
      });
    } else {
      find_releases(store_, device, [&](const Release& release, bool by_allocator) {
        add_pools(release, add);
        if (by_allocator) return;
        add(release.first->change_count, release.first->time_ns, Between::Kind::empty_cache, 0);
      });
    }
  }

  // Segments of a private pool are released once the pool is given up, and not before.
  template <typename Add>
  void add_pools(const Release& release, const Add& add) {
    for (const SegmentChange* change = release.first; change != release.end; ++change) {
      if (change->device != release.first->device || change->reserved || change->pool == 0) continue;
      if (!released_pools_.insert({change->device, change->pool}).second) continue;
      add(release.first->change_count, release.first->time_ns, Between::Kind::pool_released, change->pool);
    }
  }

  Request request_of(const Between& between) {
    Request request;
    request.time_ns = between.time_ns;
    request.device = between.device;
    switch (between.kind) {
      case Between::Kind::completion:
        return block_request(false, between.time_ns, static_cast<std::uint32_t>(between.index));
      case Between::Kind::pool_released:
        request.kind = Request::Kind::pool_released;
        request.pool = static_cast<std::uint16_t>(between.index);
        break;
      case Between::Kind::empty_cache:
        request.kind = Request::Kind::empty_cache;
        break;
      case Between::Kind::moment:
        request.kind = Request::Kind::moment;
        break;
      case Between::Kind::failed: {
        const OutOfMemory& failure = store_.out_of_memory[between.index];
        request.kind = Request::Kind::failed;
        request.size = failure.requested;
        request.stream = failure.stream.value_or(0);
        request.pool = failure.pool.value_or(0);
        break;
      }
    }
    return request;
  }

  Request block_request(bool birth, std::uint64_t time_ns, std::uint32_t block) {
    const Blocks& blocks = store_.blocks;
    Request request;
    request.kind = birth ? Request::Kind::allocate : Request::Kind::free;
    request.time_ns = time_ns;
    request.device = number_[blocks.device[block]];
    request.size = blocks.requested.empty() ? blocks.size[block] : blocks.requested[block];
    if (!blocks.stream.empty()) request.stream = blocks.stream[block];
    if (!blocks.pool.empty()) request.pool = blocks.pool[block];
    request.slot = birth ? take_slot(block) : give_slot(block);
    return request;
  }

  std::uint32_t take_slot(std::uint32_t block) {
    if (slot_of_.size() <= block) slot_of_.resize(store_.blocks.count());
    std::uint32_t slot = slots_;
    if (free_slots_.empty()) {
      ++slots_;
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    slot_of_[block] = slot;
    return slot;
  }
  std::uint32_t give_slot(std::uint32_t block) {
    free_slots_.push_back(slot_of_[block]);
    return slot_of_[block];
  }

  const Store& store_;
  std::vector<std::uint16_t> number_;  // by index into Overview::devices
  std::vector<Between> between_;
  std::vector<std::uint32_t> held_back_;
  std::set<std::pair<std::uint8_t, std::uint16_t>> released_pools_;
  std::vector<std::uint32_t> slot_of_;  // by block
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t slots_ = 0;
};

// Maximum of a granted request plus the memory reserved before it. For an expandable segment PyTorch compares the whole
// size of the request with a limit, even if part of it is mapped already.
std::uint64_t most_granted(const Store& store, std::uint8_t device) {
  std::uint64_t most = store.devices[device].peak_reserved_bytes.value_or(0);
  std::uint64_t reserved = 0;
  for (std::size_t index = 0; index < store.segment_changes.size(); ++index) {
    const SegmentChange& change = store.segment_changes[index];
    if (change.device != device) continue;
    if (change.expandable && change.reserved && change.change_count < store.live_changes.size() &&
        index >= store.segment_changes_before) {
      const LiveChange& next = store.live_changes[change.change_count];
      const std::uint64_t size = pytorch::get_allocation_size(store.blocks.size[next.block.value]);
      if (next.birth) most = std::max(most, saturating_add(reserved, size));
    }
    reserved = change.reserved ? saturating_add(reserved, change.size) : saturating_subtract(reserved, change.size);
  }
  return most;
}

// Evidence of a limit in the recording: a request was refused, or the allocator released memory before it was granted.
void find_limit(const Store& store, RequestDevice& device) {
  bool reached = false;
  const bool collects =
      store.source.allocator_settings && store.source.allocator_settings->garbage_collection_threshold.value_or(0) > 0;
  const auto note = [&](const auto&, bool by_allocator) { reached = reached || (by_allocator && !collects); };
  if (store.segment_changes.empty()) {
    find_drops(store, device.index, note);
  } else {
    find_releases(store, device.index, note);
  }
  const std::uint64_t peak = store.devices[device.index].peak_reserved_bytes.value_or(0);
  std::optional<std::uint64_t> on_device;
  for (const OutOfMemory& failure : store.out_of_memory) {
    if (failure.device != device.index) continue;
    reached = true;
    const std::uint64_t segment = pytorch::get_allocation_size(failure.requested);
    device.limit_by_fraction = failure.device_free && *failure.device_free >= segment;
    if (!failure.device_free || !failure.reserved) continue;
    const std::uint64_t all = saturating_add(*failure.reserved, *failure.device_free);
    on_device = std::min(on_device.value_or(all), all);
  }
  if (!reached) return;
  device.limit = device.limit_by_fraction ? most_granted(store, device.index) : std::max(peak, on_device.value_or(0));
}

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

Result<Requests> find_requests(const Store& store, const std::optional<std::string>& device) {
  Requests requests;
  requests.has_pending = !store.pending_frees.empty();
  requests.exact_sizes = !store.blocks.requested.empty();
  for (std::size_t index = 0; index < store.devices.size(); ++index) {
    const DeviceSummary& summary = store.devices[index];
    if (!of_caching_allocator(summary) || (device && to_string(summary.device) != *device)) continue;
    RequestDevice found;
    found.index = static_cast<std::uint8_t>(index);
    found.segments_known = !store.segment_changes.empty();
    for (const SegmentChange& change : store.segment_changes) {
      found.segments += change.device == index && change.reserved && !change.expandable;
    }
    find_limit(store, found);
    requests.devices.push_back(found);
  }
  if (requests.devices.empty()) {
    return Error{fmt::format("{}: {}", store.path,
                             device ? *device + " is no GPU that PyTorch allocated on"
                                    : "PyTorch allocated nothing on a GPU, so there is nothing to simulate")};
  }
  if (requests.devices.size() > kMaxSimulatedDevices) {
    return Error{
        fmt::format("{}: PyTorch allocated on {} GPUs; name one with --device", store.path, requests.devices.size())};
  }
  const std::vector<std::uint64_t> at_start = blocks_at_start(store);
  for (const RequestDevice& used : requests.devices) requests.at_start += at_start[used.index];
  visit_requests(store, requests, [&](const Request& request) {
    if (request.kind == Request::Kind::allocate)
      requests.slots = std::max(requests.slots, request.slot + std::uint64_t{1});
    return true;
  });
  return requests;
}

void visit_requests(const Store& store, const Requests& requests, const std::function<bool(const Request&)>& take) {
  Visitor(store, requests).visit(take);
}

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
