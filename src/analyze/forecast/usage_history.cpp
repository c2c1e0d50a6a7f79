#include "analyze/forecast/usage_history.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr std::size_t kSpansPerLevel = 128;

UsageSpan joined(const UsageSpan& left, const UsageSpan& right) {
  UsageSpan span = right;
  span.from_ns = left.from_ns;
  span.peak_bytes = std::max(left.peak_bytes, right.peak_bytes);
  span.floor_bytes = std::min(left.floor_bytes, right.floor_bytes);
  span.samples = left.samples + right.samples;
  span.recorded_peaks = left.recorded_peaks + right.recorded_peaks;
  return span;
}

}  // namespace

void UsageHistory::add(const UsageSample& sample) {
  if (!empty()) {
    if (sample.time_ns < latest().to_ns) return;
    if (sample.steps && latest().steps && *sample.steps < *latest().steps) *this = {};
  }
  if (levels_.empty()) levels_.emplace_back();
  if (empty()) from_ns_ = sample.time_ns;
  ++samples_;
  UsageSpan span;
  span.from_ns = sample.time_ns;
  span.to_ns = sample.time_ns;
  span.peak_bytes = std::max(sample.used_bytes, sample.peak_bytes.value_or(0));
  span.floor_bytes = sample.used_bytes;
  span.last_bytes = sample.used_bytes;
  span.samples = 1;
  span.steps = sample.steps;
  span.recorded_peaks = sample.peak_bytes ? 1 : 0;
  for (std::size_t level = 0;; ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    std::vector<UsageSpan>& spans = levels_[level];
    spans.push_back(span);
    if (spans.size() <= kSpansPerLevel) return;
    span = joined(spans[0], spans[1]);
    spans.erase(spans.begin(), spans.begin() + 2);
  }
}

double UsageHistory::span_seconds() const {
  return empty() ? 0 : static_cast<double>(latest().to_ns - from_ns_) / kNanosecondsPerSecond;
}

std::size_t UsageHistory::span_count() const {
  std::size_t count = 0;
  for (const auto& level : levels_) count += level.size();
  return count;
}

std::vector<UsageSpan> UsageHistory::spans() const {
  std::vector<UsageSpan> all;
  all.reserve(span_count());
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    all.insert(all.end(), level->begin(), level->end());
  }
  return all;
}

UsageGrid cut_into_cells(std::span<const UsageSpan> spans, std::uint64_t from_ns, std::size_t cells) {
  const double length = static_cast<double>(spans.back().to_ns - from_ns);
  UsageGrid grid;
  grid.cell_seconds = length / static_cast<double>(cells) / kNanosecondsPerSecond;
  grid.peaks.assign(cells, -1);
  grid.floors.assign(cells, -1);
  auto span = std::lower_bound(spans.begin(), spans.end(), from_ns,
                               [](const UsageSpan& one, std::uint64_t time) { return one.to_ns < time; });
  double before = static_cast<double>((span == spans.begin() ? *span : *(span - 1)).last_bytes);
  std::size_t filled = 0;  // cells before it have a value
  const auto fill = [&](std::size_t end) {
    for (; filled < end; ++filled) {
      if (grid.peaks[filled] < 0) grid.peaks[filled] = grid.floors[filled] = before;
    }
  };
  for (; span != spans.end(); ++span) {
    const std::uint64_t middle = std::max(from_ns, span->from_ns + (span->to_ns - span->from_ns) / 2);
    const double place = length > 0 ? static_cast<double>(middle - from_ns) / length : 0;
    const std::size_t cell = std::min(cells - 1, static_cast<std::size_t>(place * static_cast<double>(cells)));
    fill(cell);
    double& peak = grid.peaks[cell];
    double& floor = grid.floors[cell];
    peak = std::max(peak, static_cast<double>(span->peak_bytes));
    floor =
        floor < 0 ? static_cast<double>(span->floor_bytes) : std::min(floor, static_cast<double>(span->floor_bytes));
    before = static_cast<double>(span->last_bytes);
  }
  fill(cells);
  return grid;
}

}  // namespace tidemark
