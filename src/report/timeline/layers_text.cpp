#include "report/timeline/layers_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "report/common/columns.h"

namespace tidemark {

std::string layers_text(const TimelineSeries& series, const Terminal& terminal) {
  if (series.splits.empty() || series.points.empty()) return {};
  const TimelineLayers& split = series.splits.front();
  const auto highest = std::max_element(series.points.begin(), series.points.end(),
                                        [](const TimelinePoint& left, const TimelinePoint& right) {
                                          return left.allocated_bytes < right.allocated_bytes;
                                        });
  const auto peak = static_cast<std::size_t>(highest - series.points.begin());
  Columns columns({"at peak", "at end", split.by ? std::string(name_in(kOwnerKindNames, *split.by)) : "call site"});
  const auto add = [&](const std::vector<std::uint64_t>& bytes, FittedText name) {
    columns.add({format_bytes(bytes[peak]), format_bytes(bytes.back())}, std::move(name));
  };
  for (const TimelineLayers::Layer& layer : split.layers) {
    if (!split.by) {
      add(layer.bytes, fitted(layer.stack));
    } else {
      add(layer.bytes, [words = owner_text(layer.owner)](std::size_t width) { return fit(words, width); });
    }
  }
  const auto add_rest = [&](const std::vector<std::uint64_t>& bytes, const char* words) {
    if (bytes[peak] != 0 || bytes.back() != 0) add(bytes, [words](std::size_t) { return words; });
  };
  add_rest(split.other, split.by ? "(others)" : "(other call sites)");
  add_rest(split.unrecorded, "(not recorded)");
  return "\n" + columns.text(terminal, 2);
}

}  // namespace tidemark
