#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"

namespace tidemark {
namespace {

std::vector<PlotLayer> host_layers(const std::vector<HostPoint>& points) {
  LayerStack stack(points.size());
  const auto add = [&](Role role, const char* words, std::optional<std::uint64_t> HostPoint::*bytes) {
    stack.add(role, words, [&](std::size_t index) { return (points[index].*bytes).value_or(0); });
  };
  add(Role::allocated, "recorded process", &HostPoint::main_bytes);
  add(Role::library1, "DataLoader workers", &HostPoint::workers_bytes);
  add(Role::library2, "other processes of the job", &HostPoint::job_bytes);
  add(Role::library3, "shared memory", &HostPoint::shmem_bytes);
  add(Role::context, "kernel", &HostPoint::kernel_bytes);
  add(Role::processes, "other processes", &HostPoint::other_bytes);
  add(Role::cached, "page cache", &HostPoint::cache_bytes);
  return stack.take();
}

}  // namespace

Plot host_ledger_plot(const HostLedger& host, const TimeFrame& frame) {
  const std::vector<HostPoint>& points = host.points;
  const std::vector<PlotLayer> layers = host_layers(points);
  const auto peak = std::max_element(points.begin(), points.end(), [](const HostPoint& left, const HostPoint& right) {
    return left.used_bytes < right.used_bytes;
  });
  TimePlot time({std::max(frame.duration_ns, points.back().time_ns), frame.height, frame.names_times},
                std::max(peak->used_bytes, highest_bytes(layers)));
  Plot& plot = time.plot();
  plot.description = "Memory of the host over time, by what holds it";
  add_layers(time, points, layers);
  time.add_curve(Role::ink, 1.6, 0, points, [](const HostPoint& point) { return std::optional(point.used_bytes); });
  plot.legend.push_back({Role::ink, PlotKey::Sample::line, "used (above the layers: unexplained)"});
  time.add_hints(points, [&](std::size_t index) {
    std::vector<std::string> words = layer_words(layers, index);
    words.insert(words.begin(), "used " + format_bytes(points[index].used_bytes));
    return words;
  });
  for (const HostKill& kill : host.kills) time.add_mark(kill.killed.time_ns, {"killed by the kernel's OOM killer"});
  time.label_peak(Role::ink, peak->time_ns, peak->used_bytes);
  return time.take();
}

}  // namespace tidemark
