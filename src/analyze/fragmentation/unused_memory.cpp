#include "analyze/fragmentation/unused_memory.h"

#include <algorithm>
#include <cmath>

#include "analyze/common/arithmetic.h"
#include "analyze/forecast/change_points.h"
#include "analyze/forecast/period.h"

namespace tidemark {
namespace {

constexpr std::size_t kShortestStretch = 8;
constexpr std::size_t kFewestForPeriod = 32;  // fewer values of noise repeat by chance
constexpr double kMinChange = 0.01;           // of what is reserved: less is none
constexpr double kStable = 0.05;              // likewise, between the least and the most
constexpr double kMinTeeth = 0.1;             // of the most unused memory, that a sawtooth goes down by
constexpr double kGoneDown = 0.75;            // of a peak, that is allocated at most when it is over
constexpr double kStillReserved = 0.9;
constexpr double kHeld = 0.1;        // of what is reserved
constexpr double kAfterPeak = 0.25;  // of the time, that has to follow a peak

struct Part {
  std::size_t from = 0;
  std::size_t warmed_up = 0;     // the latest change in the first half: later ones are part of the trend
  std::optional<double> period;  // in cells
};

// Since when a series goes on as it does now. What repeats has changes in each period, so it comes first.
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

  // Of all, else without what change points say is warm-up.
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
    // The least of each period, the latest one whole: what goes up and down in between is no trend.
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

}  // namespace

UnusedMemory describe_unused(const UnusedCells& cells, std::optional<std::uint64_t> device_free) {
  if (cells.cells.size() >= kFewestUnusedCells) return Description(cells, device_free).describe();
  UnusedMemory unknown;
  unknown.changes = cells.changes;
  unknown.begin_ns = cells.begin_ns;
  unknown.device_free = device_free;
  return unknown;
}

}  // namespace tidemark
