#include <algorithm>

#include "analyze/common/arithmetic.h"
#include "analyze/common/totals.h"
#include "analyze/fragmentation/unused_memory.h"

namespace tidemark {
namespace {

class CellMaker {
 public:
  CellMaker(std::uint64_t begin_ns, std::uint64_t end_ns, std::size_t count) : begin_ns_(begin_ns), now_ns_(begin_ns) {
    cells_.resize(count);
    const std::uint64_t length = end_ns - begin_ns;
    for (std::size_t cell = 0; cell < count; ++cell) {
      cells_[cell].end_ns =
          begin_ns + static_cast<std::uint64_t>(static_cast<double>(length) * static_cast<double>(cell + 1) /
                                                static_cast<double>(count));
    }
    cells_.back().end_ns = end_ns;
  }

  /// The state that holds from `time_ns` on.
  void add(std::uint64_t time_ns, std::uint64_t allocated, std::uint64_t reserved) {
    pass(time_ns);
    allocated_ = allocated;
    reserved_ = reserved;
    look();
  }
  std::vector<UnusedCell> finish() {
    pass(cells_.back().end_ns);
    const auto begin = [&](std::size_t cell) { return cell == 0 ? begin_ns_ : cells_[cell - 1].end_ns; };
    for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
      cells_[cell].share /= static_cast<double>(std::max<std::uint64_t>(1, cells_[cell].end_ns - begin(cell)));
    }
    cells_.back().reserved = reserved_;
    return std::move(cells_);
  }

 private:
  [[nodiscard]] std::uint64_t unused() const { return saturating_subtract(reserved_, allocated_); }

  void look() {
    UnusedCell& cell = cells_[at_];
    cell.least = seen_ ? std::min(cell.least, unused()) : unused();
    cell.most_allocated = std::max(cell.most_allocated, allocated_);
    cell.most_reserved = std::max(cell.most_reserved, reserved_);
    seen_ = true;
  }

  void pass(std::uint64_t until_ns) {
    const double share = reserved_ == 0 ? 0 : static_cast<double>(unused()) / static_cast<double>(reserved_);
    while (now_ns_ < until_ns) {
      const std::uint64_t to_ns = std::min(until_ns, cells_[at_].end_ns);
      cells_[at_].share += share * static_cast<double>(to_ns - now_ns_);
      now_ns_ = to_ns;
      if (to_ns < cells_[at_].end_ns || at_ + 1 == cells_.size()) break;
      cells_[at_].reserved = reserved_;
      ++at_;
      seen_ = false;
      look();
    }
  }

  std::uint64_t begin_ns_;
  std::uint64_t now_ns_;
  std::vector<UnusedCell> cells_;
  std::size_t at_ = 0;
  bool seen_ = false;  // something of this cell
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
};

// Calls take(totals) for each state of the device from begin_ns on, once it has reserved memory.
template <typename Take>
void visit_reserved(const Store& store, std::size_t device, std::uint64_t begin_ns, const Take& take) {
  bool reserves = false;
  walk_totals(store, [&](const DeviceTotals& totals) {
    if (totals.device != device || totals.time_ns < begin_ns || !totals.reserved_bytes) return;
    reserves = reserves || *totals.reserved_bytes > 0;
    if (reserves) take(totals);
  });
}

}  // namespace

UnusedCells unused_cells(const Store& store, std::size_t device, std::uint64_t begin_ns) {
  UnusedCells found;
  visit_reserved(store, device, begin_ns, [&](const DeviceTotals& totals) {
    if (found.changes++ == 0) found.begin_ns = totals.time_ns;
  });
  if (found.changes < kFewestUnusedChanges || store.end_ns <= found.begin_ns) return found;
  const auto count = std::min<std::uint64_t>(kMaxUnusedCells, found.changes / 2);
  CellMaker cells(found.begin_ns, store.end_ns, count);
  visit_reserved(store, device, begin_ns, [&](const DeviceTotals& totals) {
    cells.add(std::min(totals.time_ns, store.end_ns), totals.allocated_bytes, *totals.reserved_bytes);
  });
  found.cells = cells.finish();
  return found;
}

std::optional<std::uint64_t> sampled_free_at_end(const Store& store, std::size_t device) {
  const Device of = store.devices[device].device;
  if (of.type != DeviceType::cuda) return std::nullopt;
  for (const DeviceSeries& series : store.samples.devices) {
    if (series.device.cuda_index != static_cast<std::uint32_t>(of.index) || !series.device.total_bytes) continue;
    for (std::size_t index = series.time_ns.size(); index-- > 0;) {
      if (!series.used_bytes[index]) continue;
      const std::uint64_t driver = series.driver_reserved_bytes[index].value_or(0);
      return saturating_subtract(saturating_subtract(*series.device.total_bytes, driver), *series.used_bytes[index]);
    }
  }
  return std::nullopt;
}

}  // namespace tidemark
