#include "report/common/json.h"

#include <utility>

#include "report/common/json_parts.h"

namespace tidemark {
namespace {

Json both(const ComparedValue& value) {
  return {{"a", value.a}, {"b", value.b}, {"change", value.change()}};
}

Json both(const ComparedTotal& total) {
  return {{"a", nullable(total.a)}, {"b", nullable(total.b)}, {"change", nullable(total.change())}};
}

Json group_json(const ChangeGroup& group) {
  return {{"stack_count", group.stacks}, {"change_bytes", group.bytes}};
}

Json row_json(const ComparedStack& row) {
  Json object = {{"kind", name_of(row.kind)},
                 {"peak_bytes", both(row.peak_bytes)},
                 {"peak_block_count", both(row.peak_blocks)},
                 {"total_allocated_bytes", both(row.traffic_bytes)},
                 {"allocation_count", both(row.allocations)}};
  add_key(object, row.stack);
  return object;
}

Json device_json(const ComparedDevice& device) {
  Json rows = Json::array();
  for (const ComparedStack& row : device.rows) rows.push_back(row_json(row));
  return {{"device", to_string(device.device)},
          {"in_a", device.in_a},
          {"in_b", device.in_b},
          {"peak_allocated_bytes", both(device.peak_allocated)},
          {"peak_reserved_bytes", both(device.peak_reserved)},
          {"peak_active_bytes", both(device.peak_active)},
          {"allocation_count", both(device.allocations)},
          {"total_allocated_bytes", both(device.traffic)},
          {"unrecorded_at_peak_bytes", both(device.unrecorded_at_peak)},
          {"added", group_json(device.added)},
          {"removed", group_json(device.removed)},
          {"grew", group_json(device.grew)},
          {"shrank", group_json(device.shrank)},
          {"unchanged", group_json(device.unchanged)},
          {"rows", std::move(rows)},
          {"other_row_count", device.other_rows},
          {"other_change_bytes", device.other_change}};
}

Json budget_json(const Comparison& comparison) {
  if (!comparison.budget) return nullptr;
  Json over = Json::array();
  for (const OverBudget& device : comparison.over_budget) {
    over.push_back({{"device", to_string(device.device)},
                    {"peak_allocated_bytes", both(ComparedTotal{device.a, device.b})},
                    {"excess_bytes", device.b - device.a.value_or(0)}});
  }
  return {{"limit", comparison.budget->text}, {"exceeded", !comparison.over_budget.empty()}, {"over", std::move(over)}};
}

}  // namespace

std::string to_json(const Comparison& comparison) {
  const StackMatching& matching = comparison.matching;
  Json object = {{"a", recording_json(comparison.a)},
                 {"b", recording_json(comparison.b)},
                 {"by", name_of(comparison.by)},
                 {"matching",
                  {{"lines", matching.lines},
                   {"python_frames", matching.python_frames},
                   {"native_frames", matching.native_frames},
                   {"qualified_names", matching.qualified_names}}},
                 {"budget", budget_json(comparison)}};
  object["devices"] = Json::array();
  for (const ComparedDevice& device : comparison.devices) object["devices"].push_back(device_json(device));
  return print_json({std::move(object)});
}

}  // namespace tidemark
