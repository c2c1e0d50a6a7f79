#include "report/common/json.h"

#include <utility>

#include "analyze/usage/breakdown.h"
#include "query/words/attribution.h"
#include "report/common/json_objects.h"

namespace tidemark {
namespace {

std::string key_of(OwnerKind kind) {
  return std::string(name_in(kOwnerKindNames, kind));
}

Json row_json(const BreakdownRow& row) {
  Json object = {{key_of(row.owner.kind), nullable(row.owner.name)},
                 {"bytes", row.bytes},
                 {"block_count", row.blocks},
                 {"share", row.share}};
  object["parts"] = Json::array();
  for (const BreakdownCell& cell : row.cells) {
    object["parts"].push_back({{"category", name_in(kCategoryNames, cell.category)},
                               {"phase", name_in(kPhaseNames, cell.phase)},
                               {"known_as", name_in(kConfidenceNames, cell.known_as)},
                               {"bytes", cell.bytes},
                               {"block_count", cell.blocks}});
  }
  return object;
}

Json device_json(const BreakdownDevice& device) {
  Json object = {{"device", to_string(device.device)},
                 {"at_ns", nullable(device.at_ns)},
                 {"allocated_bytes", device.allocated_bytes},
                 {"unrecorded_bytes", device.unrecorded_bytes},
                 {"categories", categories_json(device.categories)}};
  for (const BreakdownGroup& group : device.groups) {
    if (group.kind == OwnerKind::category) continue;  // above
    Json rows = Json::array();
    for (const BreakdownRow& row : group.rows) rows.push_back(row_json(row));
    object[plural_of(group.kind)] = std::move(rows);
    object[std::string("other_") + plural_of(group.kind)] = {
        {"count", group.other_rows}, {"bytes", group.other_bytes}, {"block_count", group.other_blocks}};
  }
  return object;
}

}  // namespace

Json categories_json(const std::vector<CategoryBytes>& categories) {
  Json array = Json::array();
  for (const CategoryBytes& category : categories) {
    array.push_back({{"category", name_in(kCategoryNames, category.category)},
                     {"bytes", category.bytes},
                     {"exact_bytes", category.exact_bytes},
                     {"tensor_bytes", category.tensor_bytes},
                     {"block_count", category.blocks},
                     {"share", category.share},
                     {"known_as", name_in(kConfidenceNames, category.known_as())}});
  }
  return array;
}

Json to_object(const Breakdown& breakdown) {
  Json object = recording_json(breakdown.recording);
  object["devices"] = Json::array();
  for (const BreakdownDevice& device : breakdown.devices) object["devices"].push_back(device_json(device));
  return object;
}

std::string to_json(std::span<const Breakdown> results) {
  return print_all(results);
}

}  // namespace tidemark
