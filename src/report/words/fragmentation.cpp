#include "report/words/fragmentation.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>

#include "base/units.h"
#include "report/words/recording.h"

namespace tidemark {

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
  if (!trend) return fmt::format("has no trend: fewer than {} known values", kMinTrendPoints);
  const Slope& change = trend->over_recording;
  const std::string interval =
      fmt::format("95% interval {:+.1f} to {:+.1f} percentage points", change.low * 100, change.high * 100);
  if (trend->rises() || trend->falls()) {
    return fmt::format("{} by {:.1f} percentage points over the recording ({})", trend->rises() ? "rises" : "falls",
                       std::abs(change.value) * 100, interval);
  }
  return fmt::format("shows no clear trend over the recording ({})", interval);
}

}  // namespace tidemark
