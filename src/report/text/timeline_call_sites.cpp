#include "report/text/timeline_call_sites.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "report/text/columns.h"

namespace tidemark {

std::string call_sites_text(const TimelineSeries& series, const Terminal& terminal) {
  if (!series.by_call_site || series.points.empty()) return {};
  const CallSiteLayers& layers = *series.by_call_site;
  const auto highest = std::max_element(series.points.begin(), series.points.end(),
                                        [](const TimelinePoint& left, const TimelinePoint& right) {
                                          return left.allocated_bytes < right.allocated_bytes;
                                        });
  const auto peak = static_cast<std::size_t>(highest - series.points.begin());
  Columns columns({"at peak", "at end", "call site"});
  const auto add = [&](const std::vector<std::uint64_t>& bytes, FittedText name) {
    columns.add({format_bytes(bytes[peak]), format_bytes(bytes.back())}, std::move(name));
  };
  for (const CallSiteLayers::Layer& layer : layers.call_sites) add(layer.bytes, fitted(layer.stack));
  const auto add_rest = [&](const std::vector<std::uint64_t>& bytes, const char* words) {
    if (bytes[peak] != 0 || bytes.back() != 0) add(bytes, [words](std::size_t) { return words; });
  };
  add_rest(layers.other, "(other call sites)");
  add_rest(layers.unrecorded, "(not recorded)");
  return "\n" + columns.text(terminal, 2);
}

}  // namespace tidemark
