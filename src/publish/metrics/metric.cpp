#include "publish/metrics/metric.h"

#include <utf8proc.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace tidemark {

std::int64_t metric_integer(std::uint64_t value) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMax));
}

MetricAttributes with(MetricAttributes attributes, std::string_view name, std::string value) {
  attributes.emplace_back(name, std::move(value));
  return attributes;
}

void drop_empty(MetricSet& set) {
  std::erase_if(set.metrics, [](const Metric& metric) { return metric.points.empty(); });
}

void drop_doubles(Metric& metric) {
  std::set<MetricAttributes> seen;
  std::erase_if(metric.points, [&](const MetricPoint& point) { return !seen.insert(point.attributes).second; });
}

std::string valid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string valid;
  while (!text.empty()) {
    utf8proc_int32_t letter = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &letter);
    if (length <= 0) {
      valid += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    valid += text.substr(0, static_cast<std::size_t>(length));
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return valid;
}

}  // namespace tidemark
