#include "analyze/fragmentation/unused_memory.h"

#include <algorithm>
#include <cmath>

#include "analyze/common/totals.h"
#include "analyze/forecast/change_points.h"
#include "base/arithmetic.h"

namespace tidemark {

namespace {

constexpr std::size_t kShortestStretch = 8;
constexpr std::size_t kFewestForPeriod = 32;  // fewer values of noise repeat by chance
constexpr double kMinChange = 0.01;           // of the reserved memory: smaller changes are ignored
constexpr double kStable = 0.05;              // of the reserved memory, between the minimum and the maximum
constexpr double kMinTeeth = 0.1;             // of the maximum of unused memory: minimum fall of a sawtooth
constexpr double kGoneDown = 0.75;            // of a peak: maximum allocated after it
constexpr double kStillReserved = 0.9;
constexpr double kHeld = 0.1;        // of the reserved memory
constexpr double kAfterPeak = 0.25;  // of the time: minimum time after a peak

struct Part {
  std::size_t from = 0;
  std::size_t warmed_up = 0;     // the latest change in the first half: later ones are part of the trend
  std::optional<double> period;  // in cells
};

// The start of the current pattern of a series. Periodic series change in each period, so periods are detected first.
Part latest_part(std::span<const double> values) {
  std::vector<std::size_t> begins = find_change_points(values, kShortestStretch);
  begins.insert(begins.begin(), 0);
  for (const std::size_t from : begins) {
    if (values.size() - from < kFewestForPeriod) break;
    if (const auto period = find_period(values.subspan(from))) return {from, from, period};
  }
  const auto later = std::ranges::upper_bound(begins, values.size() / 2);
  return {begins.back(), *std::prev(later), std::nullopt};
}

std::uint64_t least_of(std::span<const UnusedCell> cells) {
  return std::ranges::min(cells, {}, &UnusedCell::least).least;
}
// Steps that only rise repeat too, but do not fall.
double deepest_fall(std::span<const UnusedCell> cells) {
  std::uint64_t highest = 0;
  std::uint64_t deepest = 0;
  for (const UnusedCell& cell : cells) {
    highest = std::max(highest, cell.least);
    deepest = std::max(deepest, highest - cell.least);
  }
  return static_cast<double>(deepest);
}
std::uint64_t most_of(std::span<const UnusedCell> cells) {
  return std::ranges::max(cells, {}, &UnusedCell::least).least;
}

class Description {
 public:
  Description(const UnusedCells& cells, std::optional<std::uint64_t> device_free) : cells_(cells.cells) {
    found_.begin_ns = cells.begin_ns;
    found_.end_ns = cells_.back().end_ns;
    found_.changes = cells.changes;
    found_.reserved = cells_.back().reserved;
    found_.device_free = device_free;
    for (const UnusedCell& cell : cells_) {
      least_.push_back(static_cast<double>(cell.least));
      shares_.push_back(cell.share);
    }
  }

  UnusedMemory describe() {
    const Part part = latest_part(least_);
    std::size_t from = part.from;
    std::size_t share_from = latest_part(shares_).warmed_up;
    if (!find_held_peak(from) && !find_growth(from)) tell_apart(part);
    if (found_.grows()) share_from = from;
    found_.since_ns = begin_of(from);
    const bool held = found_.pattern == UnusedPattern::held_peak;
    const std::size_t idle_from = held ? from : std::min(from, cells_.size() / 2);
    const auto lately = cells_.subspan(idle_from);
    found_.idle_since_ns = begin_of(idle_from);
    found_.idle =
        saturating_subtract(found_.reserved, std::ranges::max(lately, {}, &UnusedCell::most_allocated).most_allocated);
    take_trends(held || found_.grows() ? from : part.warmed_up, share_from);
    return found_;
  }

 private:
  [[nodiscard]] std::uint64_t begin_of(std::size_t cell) const {
    return cell == 0 ? found_.begin_ns : cells_[cell - 1].end_ns;
  }
  [[nodiscard]] double reserved() const { return static_cast<double>(found_.reserved); }
  [[nodiscard]] double cell_seconds() const {
    return static_cast<double>(found_.end_ns - found_.begin_ns) / static_cast<double>(cells_.size()) /
           kNanosecondsPerSecond;
  }

  bool find_held_peak(std::size_t& from) {
    const auto peak = std::ranges::max_element(cells_, {}, &UnusedCell::most_allocated);
    const auto after = std::span<const UnusedCell>(peak + 1, cells_.end());
    if (peak->most_allocated == 0) return false;
    if (static_cast<double>(after.size()) < kAfterPeak * static_cast<double>(cells_.size())) return false;
    // The next cell may begin with the rest of the peak.
    const auto later = after.subspan(1);
    const std::uint64_t later_allocated = std::ranges::max(later, {}, &UnusedCell::most_allocated).most_allocated;
    const std::uint64_t most_reserved = std::ranges::max(cells_, {}, &UnusedCell::most_reserved).most_reserved;
    if (static_cast<double>(later_allocated) > kGoneDown * static_cast<double>(peak->most_allocated)) return false;
    if (reserved() < kStillReserved * static_cast<double>(most_reserved)) return false;
    if (static_cast<double>(least_of(later)) < kHeld * reserved()) return false;
    found_.pattern = UnusedPattern::held_peak;
    found_.peak_allocated = peak->most_allocated;
    found_.peak_at_ns = begin_of(static_cast<std::size_t>(peak - cells_.begin()));
    found_.later_allocated = later_allocated;
    from = cells_.size() - later.size();
    return true;
  }

  // In all cells, else without the warm-up according to change points.
  bool find_growth(std::size_t& from) { return find_growth_in(0, from) || (from > 0 && find_growth_in(from, from)); }

  bool find_growth_in(std::size_t begin, std::size_t& from) {
    Forecaster forecaster;
    for (const UnusedCell& cell : cells_.subspan(begin)) {
      forecaster.add({cell.end_ns, cell.least, std::nullopt, std::nullopt});
    }
    std::optional<std::uint64_t> limit;
    if (found_.device_free) limit = saturating_add(cells_.back().least, *found_.device_free);
    const RiskAssessment risk = forecaster.assess(limit);
    if (risk.pattern != UsagePattern::growth && risk.pattern != UsagePattern::steps) return false;
    if (risk.growth_bytes_per_second * risk.span_seconds < kMinChange * reserved()) return false;
    found_.pattern = risk.pattern == UsagePattern::steps ? UnusedPattern::steps : UnusedPattern::growing;
    found_.seconds_to_limit = risk.seconds_to_limit;
    const auto cells = static_cast<std::size_t>(std::lround(risk.span_seconds / cell_seconds()));
    from = cells_.size() - std::clamp(cells, kShortestStretch, cells_.size() - begin);
    return true;
  }

  void tell_apart(const Part& part) {
    const auto since = std::span(cells_).subspan(part.from);
    const auto range = static_cast<double>(most_of(since) - least_of(since));
    if (range <= kStable * reserved()) {
      found_.pattern = UnusedPattern::stable;
    } else if (part.period && deepest_fall(since) >= kMinTeeth * static_cast<double>(most_of(since))) {
      found_.pattern = UnusedPattern::sawtooth;
      found_.period_seconds = *part.period * cell_seconds();
    } else {
      found_.pattern = UnusedPattern::irregular;
    }
  }

  void take_trends(std::size_t from, std::size_t share_from) {
    found_.share_trend = trend_of(
        std::vector<std::optional<double>>(shares_.begin() + static_cast<std::ptrdiff_t>(share_from), shares_.end()));
    if (found_.share_trend) {
      const auto shares = std::span<const double>(shares_).subspan(share_from);
      const double most = std::ranges::max(shares) - std::ranges::min(shares);
      Slope& change = found_.share_trend->over_recording;
      for (double* by : {&change.value, &change.low, &change.high}) *by = std::clamp(*by, -most, most);
      found_.share_trend->begin_ns = begin_of(share_from);
      found_.share_trend->end_ns = found_.end_ns;
    }
    // The minimum of each period, up to the latest complete one: variation within a period is no trend.
    const std::size_t cells =
        found_.period_seconds ? static_cast<std::size_t>(std::ceil(*found_.period_seconds / cell_seconds())) : 1;
    from += (least_.size() - from) % cells;
    std::vector<double> least;
    for (std::size_t cell = from; cell < least_.size(); cell += cells) {
      least.push_back(*std::min_element(least_.begin() + static_cast<std::ptrdiff_t>(cell),
                                        least_.begin() + static_cast<std::ptrdiff_t>(cell + cells)));
    }
    if (least.size() < kMinTrendPoints) return;
    const Slope slope = theil_sen(least);
    const auto [lowest, highest] = std::ranges::minmax(least);
    const auto change = [&, most = highest - lowest](double by) {
      return std::clamp(by * static_cast<double>(least.size() - 1), -most, most);
    };
    ByteTrend& trend = found_.trend.emplace();
    trend.change = {change(slope.value), change(slope.low), change(slope.high)};
    trend.begin_ns = begin_of(from);
    trend.end_ns = found_.end_ns;
    trend.least_change = kMinChange * reserved();
  }

  std::span<const UnusedCell> cells_;
  std::vector<double> least_;
  std::vector<double> shares_;
  UnusedMemory found_;
};

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

// A program that ends with a failed request only frees memory afterwards, which says nothing about its use of it.
std::uint64_t end_of_use(const Store& store, std::size_t device) {
  const auto failed = std::find_if(store.out_of_memory.rbegin(), store.out_of_memory.rend(),
                                   [device](const OutOfMemory& event) { return event.device == device; });
  if (failed == store.out_of_memory.rend()) return store.end_ns;
  for (std::size_t block = store.blocks.count(); block-- > 0;) {
    if (store.blocks.birth_change[block] < failed->change_count) break;
    if (store.blocks.device[block] == device) return store.end_ns;  // the program went on
  }
  return std::min(failed->time_ns, store.end_ns);
}

}  // namespace

UnusedMemory describe_unused(const UnusedCells& cells, std::optional<std::uint64_t> device_free) {
  if (cells.cells.size() >= kFewestUnusedCells) return Description(cells, device_free).describe();
  UnusedMemory unknown;
  unknown.changes = cells.changes;
  unknown.begin_ns = cells.begin_ns;
  unknown.device_free = device_free;
  return unknown;
}

UnusedCells unused_cells(const Store& store, std::size_t device, std::uint64_t begin_ns) {
  UnusedCells found;
  const std::uint64_t end_ns = end_of_use(store, device);
  visit_reserved(store, device, begin_ns, [&](const DeviceTotals& totals) {
    if (totals.time_ns <= end_ns && found.changes++ == 0) found.begin_ns = totals.time_ns;
  });
  if (found.changes < kFewestUnusedChanges || end_ns <= found.begin_ns) return found;
  const auto count = std::min<std::uint64_t>(kMaxUnusedCells, found.changes / 2);
  CellMaker cells(found.begin_ns, end_ns, count);
  visit_reserved(store, device, begin_ns, [&](const DeviceTotals& totals) {
    if (totals.time_ns <= end_ns) cells.add(totals.time_ns, totals.allocated_bytes, *totals.reserved_bytes);
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
