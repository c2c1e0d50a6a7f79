#include "report/chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/output_file.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "report/chart/picture.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

// "python train.py", "run.pickle", "python train.py (3 recordings)".
template <typename Analysis>
std::string recordings_words(std::span<const Analysis> results) {
  if (results.empty()) return "nothing recorded";
  const RecordingInfo& first = results.front().recording;
  std::string words = first.process.command_line.empty() ? recording_title(first) : shown(first.process.command_line);
  if (results.size() > 1) words += fmt::format(" ({} recordings)", results.size());
  return words;
}

// ", " and the recording's title if several are shown.
template <typename Analysis>
std::string recording_suffix(std::span<const Analysis> results, const Analysis& result) {
  return results.size() > 1 ? ", " + recording_title(result.recording) : std::string();
}

// Panels over time: few panels are tall, many share the legible height. The last one has the time labels.
TimeFrame frame_of(std::uint64_t duration_ns, std::size_t panel, std::size_t panels, std::uint64_t begin_ns = 0) {
  TimeFrame frame{duration_ns, panels <= 1 ? 350.0 : panels <= 4 ? 210.0 : 120.0, panel + 1 == panels};
  frame.begin_ns = begin_ns;
  return frame;
}

// The first allocation on any device, where a picture without the host's memory begins.
std::uint64_t first_allocation_ns(std::span<const Timeline> timelines) {
  std::optional<std::uint64_t> first;
  for (const Timeline& timeline : timelines) {
    for (const TimelineSeries& series : timeline.series) {
      if (!series.points.empty()) first = std::min(first.value_or(~std::uint64_t{0}), series.points.front().time_ns);
    }
  }
  return first.value_or(0);
}

}  // namespace

Result<void> write_picture(const std::string& path, const Result<std::string>& picture) {
  if (!picture) return picture.error();
  return write_file(path, *picture);
}

Result<std::string> draw_chart(std::span<const Timeline> timelines, ChartFormat format) {
  std::size_t panels = 0;
  std::size_t hosts = 0;
  std::uint64_t duration_ns = 1;
  for (const Timeline& timeline : timelines) {
    panels += timeline.series.size();
    duration_ns = std::max(duration_ns, timeline.recording.duration_ns);
    if (!timeline.host) continue;
    ++hosts;
    duration_ns = std::max(duration_ns, timeline.host->end_ns());
  }
  const bool with_hosts = panels + hosts <= kMaxPanels;  // omitted in a picture of many ranks
  if (with_hosts) panels += hosts;
  if (auto checked = check_panel_count(panels); !checked) return checked.error();
  const std::uint64_t begin_ns = hosts == 0 || !with_hosts ? first_allocation_ns(timelines) : 0;
  Picture picture{"Memory over time", recordings_words(timelines), {}, "No events.", "time since the recording began"};
  for (const Timeline& timeline : timelines) {
    for (const TimelineSeries& series : timeline.series) {
      const TimeFrame frame = frame_of(duration_ns, picture.panels.size(), panels, begin_ns);
      picture.panels.push_back({to_string(series.device) + recording_suffix(timelines, timeline),
                                series.splits.empty() ? timeline_plot(timeline, series, frame)
                                                      : layers_plot(timeline, series, series.splits.front(), frame)});
    }
    if (!with_hosts || !timeline.host) continue;
    picture.panels.push_back({"host" + recording_suffix(timelines, timeline),
                              host_plot(*timeline.host, frame_of(duration_ns, picture.panels.size(), panels))});
  }
  return draw_picture(picture, format);
}

Result<std::string> draw_ledger(std::span<const Ledger> ledgers, ChartFormat format) {
  std::size_t panels = 0;
  std::uint64_t duration_ns = 1;
  for (const Ledger& ledger : ledgers) {
    duration_ns = std::max(duration_ns, ledger.recording.duration_ns);
    for (const LedgerDevice& device : ledger.devices) {
      if (device.points.empty()) continue;
      ++panels;
      duration_ns = std::max(duration_ns, device.points.back().time_ns);
    }
    if (!ledger.host || ledger.host->points.empty()) continue;
    ++panels;
    duration_ns = std::max(duration_ns, ledger.host->points.back().time_ns);
  }
  if (auto checked = check_panel_count(panels); !checked) return checked.error();
  Picture picture{"All memory over time, by what holds it",
                  recordings_words(ledgers),
                  {},
                  "No samples of the host, or of a GPU that this process used.",
                  "time since the recording began"};
  for (const Ledger& ledger : ledgers) {
    for (const LedgerDevice& device : ledger.devices) {
      if (device.points.empty()) continue;
      std::string title = shown(device.device);
      if (!device.model.empty()) title += ", " + shown(device.model);
      picture.panels.push_back({title + recording_suffix(ledgers, ledger),
                                ledger_plot(device, frame_of(duration_ns, picture.panels.size(), panels))});
    }
    if (!ledger.host || ledger.host->points.empty()) continue;
    picture.panels.push_back({"host" + recording_suffix(ledgers, ledger),
                              host_ledger_plot(*ledger.host, frame_of(duration_ns, picture.panels.size(), panels))});
  }
  return draw_picture(picture, format);
}

Result<std::string> draw_breakdown(std::span<const Breakdown> results, ChartFormat format) {
  std::size_t panels = 0;
  for (const Breakdown& result : results) panels += result.devices.size();
  if (auto checked = check_panel_count(panels); !checked) return checked.error();
  Picture picture{"Allocated memory by category", recordings_words(results), {}, "No events.", {}};
  for (const Breakdown& result : results) {
    for (const BreakdownDevice& device : result.devices) {
      picture.panels.push_back(
          {fmt::format("{} {}: {} allocated", to_string(device.device) + recording_suffix(results, result),
                       at_text(device.at_ns), format_bytes(device.allocated_bytes)),
           breakdown_plot(device)});
    }
  }
  return draw_picture(picture, format);
}

Result<std::string> draw_segment_map(std::span<const Fragmentation> results, ChartFormat format) {
  std::size_t panels = 0;
  for (const Fragmentation& result : results) panels += result.devices.size();
  if (auto checked = check_panel_count(panels); !checked) return checked.error();
  Picture picture{"Allocator segments", recordings_words(results), {}, "No events.", {}};
  for (const Fragmentation& result : results) {
    for (const FragmentationDevice& device : result.devices) {
      PicturePanel panel{to_string(device.totals.device) + recording_suffix(results, result),
                         segment_plot({device.map, 0, 0, nullptr})};
      if (device.at_moment) {
        panel.title +=
            fmt::format(", at {}: {} reserved, {} allocated, {} free", format_duration_ns(device.at_moment->time_ns),
                        bytes_text(device.at_moment->reserved), format_bytes(device.at_moment->allocated),
                        bytes_text(device.at_moment->free));
      }
      if (panel.plot.boxes.empty()) {
        panel.plot.remark = device.knows_segments ? "No segment was reserved at that time."
                                                  : "The segment map is known from PyTorch snapshots only.";
      }
      picture.panels.push_back(std::move(panel));
    }
  }
  return draw_picture(picture, format);
}

}  // namespace tidemark
