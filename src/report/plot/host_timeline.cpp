#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"
#include "store/samples.h"

namespace tidemark {
namespace {

using plot_layout::kAreaOpacity;

void add_value(TimePlot& time, Role role, double fill_opacity, const char* words, const SampledOverTime& value) {
  const auto bytes = [](const TimedBytes& point) { return std::optional(point.bytes); };
  time.add_curve(role, fill_opacity == 0 ? 1.8 : 1, fill_opacity, value.points, bytes);
  const auto sample = fill_opacity == 0 ? PlotKey::Sample::line : PlotKey::Sample::area;
  time.plot().legend.push_back({role, sample, words});
}

// The parts of RSS. The sum of a sample's parts is its RSS.
std::vector<PlotLayer> resident_layers(const std::vector<ResidentPoint>& points) {
  LayerStack stack(points.size());
  stack.add(Role::rss, "anonymous memory", [&](std::size_t index) { return points[index].anon_bytes; });
  stack.add(Role::library2, "shared memory", [&](std::size_t index) { return points[index].shmem_bytes; });
  stack.add(Role::cached, "files", [&](std::size_t index) { return points[index].file_bytes; });
  return stack.take();
}

}  // namespace

Plot host_plot(const HostTimeline& host, const TimeFrame& frame) {
  const SampledOverTime& first = host.rss ? *host.rss : *host.pss;
  TimePlot time({std::max(frame.duration_ns, host.end_ns()), frame.height, frame.names_times},
                std::max(first.peak, host.pss ? host.pss->peak : 0));
  time.plot().description = fmt::format("Memory of the process on the host over time: peak {} {} {}",
                                        host.rss ? "RSS" : "PSS", format_bytes(first.peak), at_text(first.peak_at_ns));
  const std::vector<PlotLayer> layers = resident_layers(host.resident);
  if (!layers.empty()) {
    add_layers(time, host.resident, layers);
  } else if (host.rss) {
    add_value(time, Role::rss, kAreaOpacity, "RSS of the process", *host.rss);
  }
  if (host.pss) add_value(time, Role::pss, 0, "PSS: pages that processes share count in parts", *host.pss);
  time.add_hints(first.points, [&](std::size_t index) {
    std::vector<std::string> words;
    const std::uint64_t time_ns = first.points[index].time_ns;
    if (host.rss) words.push_back("RSS " + format_bytes(first.points[index].bytes));
    const auto parts =
        std::upper_bound(host.resident.begin(), host.resident.end(), time_ns,
                         [](std::uint64_t at, const ResidentPoint& point) { return at < point.time_ns; });
    if (parts != host.resident.begin()) {
      for (std::string& part : layer_words(layers, static_cast<std::size_t>(parts - host.resident.begin()) - 1)) {
        words.push_back(std::move(part));
      }
    }
    if (!host.pss) return words;
    const auto after = std::upper_bound(host.pss->points.begin(), host.pss->points.end(), time_ns,
                                        [](std::uint64_t at, const TimedBytes& point) { return at < point.time_ns; });
    if (after != host.pss->points.begin()) words.push_back("PSS " + format_bytes((after - 1)->bytes));
    return words;
  });
  time.label_peak(host.rss ? Role::rss : Role::pss, first.peak_at_ns, first.peak);
  return time.take();
}

}  // namespace tidemark
