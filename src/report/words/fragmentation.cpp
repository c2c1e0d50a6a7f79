#include "report/words/fragmentation.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>

#include "base/units.h"
#include "report/words/recording.h"

namespace tidemark {

std::vector<MeasuredMoment> measured_moments(const FragmentationDevice& device) {
  std::vector<MeasuredMoment> moments;
  if (device.at_peak_allocated) moments.push_back({"peak allocated", &*device.at_peak_allocated});
  if (device.at_peak_reserved) moments.push_back({"peak reserved", &*device.at_peak_reserved});
  moments.push_back({"end", &device.at_end});
  return moments;
}

std::vector<MeasureRow> measure_rows(const FragmentationDevice& device) {
  std::vector<MeasureRow> rows;
  const std::vector<MeasuredMoment> moments = measured_moments(device);
  const auto row = [&](const char* label, const std::function<std::string(const FragmentationMeasures&)>& cell) {
    MeasureRow& added = rows.emplace_back();
    added.label = label;
    added.cells.reserve(moments.size());
    for (const MeasuredMoment& moment : moments) added.cells.push_back(cell(*moment.measures));
  };
  using M = FragmentationMeasures;
  row("from the start", [](const M& m) { return format_duration_ns(m.time_ns); });
  row("allocated", [](const M& m) { return format_bytes(m.allocated); });
  row("reserved", [](const M& m) { return bytes_text(m.reserved); });
  row("not allocated, of reserved", [](const M& m) { return share_text(m.unused_share()); });
  if (!device.knows_segments) return rows;
  row("free: cached by the allocator", [](const M& m) { return bytes_text(m.free); });
  row("  in so many pieces", [](const M& m) { return m.free_pieces ? format_count(*m.free_pieces) : "n/a"; });
  row("  the largest of them", [](const M& m) { return bytes_text(m.largest_free); });
  row("  outside the largest", [](const M& m) { return share_text(m.external_share()); });
  row("  releasable: whole segments", [](const M& m) { return bytes_text(m.releasable); });
  row("  inactive split: beside blocks in use", [](const M& m) { return bytes_text(m.inactive_split); });
  row("pending free", [](const M& m) { return m.active ? format_bytes(*m.active - m.allocated) : "n/a"; });
  row("rounding: allocated beyond requested", [](const M& m) { return bytes_text(m.rounding); });
  return rows;
}

std::string trend_text(const std::optional<ShareTrend>& trend) {
  if (!trend) return fmt::format("has no trend: it is known at fewer than {} moments", kFewestTrendMoments);
  const Slope& change = trend->over_recording;
  const std::string interval =
      fmt::format("95% interval {:+.1f} to {:+.1f} points", change.low * 100, change.high * 100);
  if (trend->rises() || trend->falls()) {
    return fmt::format("{} by {:.1f} points over the recording ({})", trend->rises() ? "rises" : "falls",
                       std::abs(change.value) * 100, interval);
  }
  return fmt::format("neither rises nor falls clearly over the recording ({})", interval);
}

}  // namespace tidemark
