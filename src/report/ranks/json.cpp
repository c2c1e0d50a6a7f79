#include "report/common/json.h"

#include <utility>

#include "analyze/usage/ranks.h"
#include "report/common/json_objects.h"

namespace tidemark {
namespace {

Json row_json(const RankRow& row) {
  const ProcessInfo& process = row.recording.process;
  return {{"file", row.recording.path},
          {"rank", nullable(process.rank)},
          {"pid", nullable(process.pid)},
          {"data_loader_worker", row.recording.is_worker},
          {"device", row.device ? Json(to_string(*row.device)) : Json(nullptr)},
          {"peak_allocated_bytes", row.peak_allocated_bytes},
          {"peak_reserved_bytes", nullable(row.peak_reserved_bytes)},
          {"device_used_bytes", nullable(row.device_used_bytes)},
          {"out_of_memory", row.out_of_memory},
          {"difference_to_median", nullable(row.difference)},
          {"outlier", row.outlier}};
}

Json group_json(const RankGroup& group) {
  const std::string device = to_string(Device{group.type, 0});
  return {{"device_type", device.substr(0, device.find(':'))},
          {"children", group.children},
          {"process_count", group.count},
          {"median_bytes", group.median_bytes},
          {"outlier_limit_bytes", group.limit_bytes}};
}

}  // namespace

Json to_object(const RankComparison& ranks) {
  Json object = {{"rows", Json::array()}, {"groups", Json::array()}};
  for (const RankRow& row : ranks.rows) object["rows"].push_back(row_json(row));
  for (const RankGroup& group : ranks.groups) object["groups"].push_back(group_json(group));
  return object;
}

std::string to_json(const RankComparison& ranks, const std::vector<const Summary*>& details) {
  Json document = {{"ranks", to_object(ranks)}, {"recordings", Json::array()}};
  for (const Summary* summary : details) document["recordings"].push_back(to_object(*summary));
  return print_json({std::move(document)});
}

}  // namespace tidemark
