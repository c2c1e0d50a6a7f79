#include "analyze/usage/temporary.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

struct Peak {
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> at_ns;
};

/// Replays the steps of all devices without the blocks that are left out; the allocator's totals shrink by them.
class PeakReplay {
 public:
  PeakReplay(const Store& store, const std::vector<bool>& left_out)
      : store_(store), left_out_(left_out), now_(store.devices.size()), peaks_(store.devices.size()) {}

  std::vector<Peak> run() && {
    auto change = store_.totals_changes.begin();
    for (std::size_t index = 0; index < store_.live_changes.size(); ++index) {
      for (; change != store_.totals_changes.end() && change->change_count <= index; ++change) take_change(*change);
      const LiveChange& live_change = store_.live_changes[index];
      const std::size_t block = live_change.block.value;
      const std::size_t device = store_.blocks.device[block];
      const std::uint64_t size = left_out_[block] ? 0 : store_.blocks.size[block];
      now_[device].recorded += live_change.birth ? size : 0 - size;
      // A change with this live change belongs to the same state: the state between the two never existed.
      if (change != store_.totals_changes.end() && change->with_live_change && change->change_count == index + 1) {
        now_[change->device].unrecorded = static_cast<std::uint64_t>(change->unrecorded);
        ++change;
      }
      take_peak(device, live_change.time_ns);
    }
    for (; change != store_.totals_changes.end(); ++change) take_change(*change);
    return std::move(peaks_);
  }

 private:
  struct Now {
    std::uint64_t recorded = 0;    // bytes in the blocks that are kept
    std::uint64_t unrecorded = 0;  // modulo 2^64: it may be below 0
  };

  void take_change(const TotalsChange& change) {
    now_[change.device].unrecorded = static_cast<std::uint64_t>(change.unrecorded);
    take_peak(change.device, change.time_ns);
  }
  void take_peak(std::size_t device, std::uint64_t time_ns) {
    const std::uint64_t allocated = now_[device].recorded + now_[device].unrecorded;
    if (static_cast<std::int64_t>(allocated) <= static_cast<std::int64_t>(peaks_[device].bytes)) return;
    peaks_[device] = {allocated, time_ns};
  }

  const Store& store_;
  const std::vector<bool>& left_out_;
  std::vector<Now> now_;
  std::vector<Peak> peaks_;
};

struct TemporarySum {
  std::uint32_t group = 0;  // a StackId, or one of OwnerGroups
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
};

/// Sums by device and group.
std::vector<std::vector<TemporarySum>> sums_by_group(const Store& store, const std::vector<bool>& temporary,
                                                     const std::optional<OwnerGroups>& owners) {
  std::vector<std::unordered_map<std::uint32_t, TemporarySum>> sums(store.devices.size());
  const Blocks& blocks = store.blocks;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    if (!temporary[block]) continue;
    const std::uint32_t group = owners ? owners->of(block) : blocks.stack[block].value;
    TemporarySum& sum = sums[blocks.device[block]][group];
    sum.group = group;
    ++sum.count;
    sum.bytes = saturating_add(sum.bytes, blocks.size[block]);
    sum.largest = std::max(sum.largest, blocks.size[block]);
  }
  std::vector<std::vector<TemporarySum>> sorted;
  for (const auto& of_device : sums) {
    std::vector<TemporarySum>& list = sorted.emplace_back();
    for (const auto& [group, sum] : of_device) list.push_back(sum);
    std::sort(list.begin(), list.end(), [](const TemporarySum& left, const TemporarySum& right) {
      return left.bytes != right.bytes ? left.bytes > right.bytes : left.group < right.group;
    });
  }
  return sorted;
}

TemporaryDevice describe(const DeviceSummary& totals, const Peak& peak, const std::vector<TemporarySum>& sums,
                         const std::optional<OwnerGroups>& owners, Symbols& symbols, std::size_t top) {
  TemporaryDevice result;
  result.totals = totals;
  result.reduced_peak_bytes = peak.bytes;
  result.reduced_peak_at_ns = peak.at_ns;
  for (const TemporarySum& sum : sums) {
    result.count += sum.count;
    result.bytes = saturating_add(result.bytes, sum.bytes);
    if (top == 0 || result.rows.size() < top) {
      TemporaryRow& row = result.rows.emplace_back();
      if (owners) {
        row.owner = owners->owner(sum.group);
      } else {
        row.stack = name_stack(symbols, StackId{sum.group});
      }
      row.count = sum.count;
      row.bytes = sum.bytes;
      row.largest_bytes = sum.largest;
      row.share = share_of(sum.bytes, totals.total_bytes_allocated);
    } else {
      ++result.other_rows;
      result.other_count += sum.count;
      result.other_bytes = saturating_add(result.other_bytes, sum.bytes);
    }
  }
  if (!owners) tell_rows_apart(result.rows, &TemporaryRow::stack);
  result.share = share_of(result.bytes, totals.total_bytes_allocated);
  return result;
}

}  // namespace

std::vector<bool> find_temporary(const Store& store, std::uint64_t within) {
  std::vector<std::uint64_t> unseen = blocks_at_start(store);
  std::vector<std::uint64_t> allocations(store.devices.size(), 0);  // so far
  std::vector<std::uint32_t> number(store.blocks.count(), 0);       // of the allocation, from 1; 0 = not seen
  std::vector<bool> temporary(store.blocks.count(), false);
  for (const LiveChange& live_change : store.live_changes) {
    const std::size_t block = live_change.block.value;
    const std::size_t device = store.blocks.device[block];
    if (!live_change.birth) {
      temporary[block] = number[block] != 0 && allocations[device] - number[block] <= within;
    } else if (unseen[device] != 0) {
      --unseen[device];
    } else {
      number[block] = static_cast<std::uint32_t>(++allocations[device]);
    }
  }
  return temporary;
}

Result<Temporary> analyze_temporary(const Store& store, Symbols& symbols, const TemporaryOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  std::optional<OwnerGroups> owners;
  if (options.by) {
    auto made = OwnerGroups::create(store, *options.attribution, *options.by);
    if (!made) return made.error();
    owners = std::move(*made);
  }
  std::vector<bool> temporary = find_temporary(store, options.within);
  for (std::size_t block = 0; block < temporary.size(); ++block) {
    if (!options.filter(block)) temporary[block] = false;
  }
  const std::vector<Peak> peaks = PeakReplay(store, temporary).run();
  const std::vector<std::vector<TemporarySum>> sums = sums_by_group(store, temporary, owners);
  Temporary result;
  result.within = options.within;
  result.by = options.by;
  for (const std::size_t device : *selected) {
    result.devices.push_back(
        describe(store.devices[device], peaks[device], sums[device], owners, symbols, options.top));
  }
  result.recording = describe_recording(store, symbols);
  return result;
}

}  // namespace tidemark
