#include "report/ranks/words.h"

#include <fmt/format.h>

#include "base/units.h"
#include "query/words/recording_text.h"

namespace tidemark {

std::string rank_name(const RankRow& row) {
  const std::string name = process_name(row.recording, row.child);
  return row.device ? fmt::format("{}, {}", name, to_string(*row.device)) : name;
}

std::string difference_text(const std::optional<double>& difference) {
  if (!difference) return "n/a";
  return *difference == 0 ? "0.0%" : fmt::format("{:+.1f}%", *difference * 100);
}

std::string group_text(const RankGroup& group) {
  const std::string device = to_string(Device{group.type, 0});
  std::string text =
      fmt::format("{}{}: median of {} peaks {}", device.substr(0, device.find(':')), group.children ? ", children" : "",
                  format_count(group.count), format_bytes(group.median_bytes));
  if (group.has_outliers()) text += fmt::format("; outliers beyond \xC2\xB1{}", format_bytes(group.limit_bytes));
  return text;
}

}  // namespace tidemark
