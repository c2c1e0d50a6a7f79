#include "report/fragmentation/words.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>

#include "base/units.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

// "+1.2", "-0.3"; "0.0" has no sign.
std::string points_text(double share) {
  const double tenths = std::round(share * 1000);
  return tenths == 0 ? "0.0" : fmt::format("{:+.1f}", tenths / 10);
}

}  // namespace

std::vector<MeasureColumn> measure_columns(const FragmentationDevice& device) {
  std::vector<MeasureColumn> moments;
  if (device.at_peak_allocated) moments.push_back({"peak allocated", &*device.at_peak_allocated});
  if (device.at_peak_reserved) moments.push_back({"peak reserved", &*device.at_peak_reserved});
  moments.push_back({"end", &device.at_end});
  return moments;
}

std::vector<MeasureRow> measure_rows(const FragmentationDevice& device) {
  std::vector<MeasureRow> rows;
  const std::vector<MeasureColumn> moments = measure_columns(device);
  const auto row = [&](const char* label, const std::function<std::string(const FragmentationMeasures&)>& cell) {
    MeasureRow& added = rows.emplace_back();
    added.label = label;
    added.cells.reserve(moments.size());
    for (const MeasureColumn& moment : moments) added.cells.push_back(cell(*moment.measures));
  };
  using M = FragmentationMeasures;
  row("time", [](const M& m) { return format_duration_ns(m.time_ns); });
  row("allocated", [](const M& m) { return format_bytes(m.allocated); });
  row("reserved", [](const M& m) { return bytes_text(m.reserved); });
  row("unused share (1 - allocated / reserved)", [](const M& m) { return share_text(m.unused_share()); });
  if (!device.knows_segments) return rows;
  row("free (cached by the allocator)", [](const M& m) { return bytes_text(m.free); });
  row("  free blocks", [](const M& m) { return m.free_blocks ? format_count(*m.free_blocks) : "n/a"; });
  row("  largest free block", [](const M& m) { return bytes_text(m.largest_free); });
  row("  external fragmentation", [](const M& m) { return share_text(m.external_share()); });
  row("  releasable (segments without blocks)", [](const M& m) { return bytes_text(m.releasable); });
  row("  inactive split (segments with blocks)", [](const M& m) { return bytes_text(m.inactive_split); });
  row("pending free", [](const M& m) { return m.active ? format_bytes(*m.active - m.allocated) : "n/a"; });
  row("rounding (allocated - requested)", [](const M& m) { return bytes_text(m.rounding); });
  return rows;
}

std::string trend_text(const std::optional<ShareTrend>& trend) {
  if (!trend) return "has no trend: too few known values";
  const Slope& change = trend->over_recording;
  const std::string time =
      fmt::format("from {} to {}", format_duration_ns(trend->begin_ns), format_duration_ns(trend->end_ns));
  const std::string interval = fmt::format("95% interval {} to {}", points_text(change.low), points_text(change.high));
  if (!change.rises() && !change.falls()) {
    return fmt::format("shows no clear trend {} ({} percentage points)", time, interval);
  }
  const std::string size = fmt::format("{:.1f} percentage points", std::abs(change.value) * 100);
  return fmt::format("{} {} ({})", clear_change_text(change, trend->rises() || trend->falls(), size), time, interval);
}

}  // namespace tidemark
