#include "analyze/common/totals.h"

#include <optional>
#include <vector>

namespace tidemark {
namespace {

class Walk {
 public:
  Walk(const Store& store, const std::function<void(const DeviceTotals&)>& visit)
      : store_(store), visit_(visit), change_(store.totals_changes.begin()), running_(store.devices.size()) {}

  void run() {
    for (std::size_t index = 0; index < store_.live_changes.size(); ++index) {
      take_changes_before(index);
      const LiveChange& live_change = store_.live_changes[index];
      const std::size_t device = store_.blocks.device[live_change.block.value];
      const std::uint64_t size = store_.blocks.size[live_change.block.value];
      Running& running = running_[device];
      running.recorded = live_change.birth ? running.recorded + size : running.recorded - size;
      // A change with this live change belongs to the same state: the state between the two never existed.
      if (change_ != store_.totals_changes.end() && change_->with_live_change && change_->change_count == index + 1)
        take_change();
      report(device, live_change.time_ns, index + 1);
    }
    take_changes_before(store_.live_changes.size());
  }

 private:
  struct Running {
    std::uint64_t recorded = 0;
    std::int64_t unrecorded = 0;
    std::optional<std::uint64_t> reserved;
    std::uint64_t pending = 0;
  };

  void take_changes_before(std::size_t count) {
    while (change_ != store_.totals_changes.end() && change_->change_count <= count) {
      const TotalsChange& change = take_change();
      report(change.device, change.time_ns, change.change_count);
    }
  }

  const TotalsChange& take_change() {
    const TotalsChange& change = *change_++;
    Running& running = running_[change.device];
    running.unrecorded = change.unrecorded;
    running.reserved = change.reserved;
    running.pending = change.pending;
    return change;
  }

  void report(std::size_t device, std::uint64_t time_ns, std::uint64_t change_count) const {
    const Running& running = running_[device];
    const DeviceSummary& summary = store_.devices[device];
    DeviceTotals totals = {device, time_ns, change_count, 0, std::nullopt, running.reserved};
    const auto allocated = static_cast<std::int64_t>(running.recorded) + running.unrecorded;
    if (allocated > 0) totals.allocated_bytes = static_cast<std::uint64_t>(allocated);
    if (summary.peak_active_bytes) totals.active_bytes = totals.allocated_bytes + running.pending;
    visit_(totals);
  }

  const Store& store_;
  const std::function<void(const DeviceTotals&)>& visit_;
  std::vector<TotalsChange>::const_iterator change_;
  std::vector<Running> running_;
};

}  // namespace

void walk_totals(const Store& store, const std::function<void(const DeviceTotals&)>& visit) {
  Walk(store, visit).run();
}

}  // namespace tidemark
