#include "report/common/json.h"

#include <utility>

#include "report/common/json_objects.h"

namespace tidemark {
namespace {

Json lifetimes_json(const PatternsDevice& device) {
  Json list = Json::array();
  for (std::size_t index = 0; index < kLifetimes; ++index) {
    if (device.held[index].blocks == 0) continue;
    list.push_back({{"lifetime", name_of(static_cast<Lifetime>(index))},
                    {"bytes", device.held[index].bytes},
                    {"block_count", device.held[index].blocks}});
  }
  return list;
}

Json pattern_json(const PatternsDevice& device, const Pattern& pattern) {
  Json rows = Json::array();
  for (const PatternRow& row : pattern.rows) {
    rows.push_back({{"held_at_peak_bytes", row.peak_bytes},
                    {"held_at_peak_block_count", row.peak_blocks},
                    {"block_count", row.count},
                    {"total_bytes", row.bytes},
                    {"stack", stack_json(row.stack)}});
  }
  return {{"block_count", pattern.count},
          {"held_at_peak_bytes", pattern.peak_bytes},
          {"reduced_peak_bytes", pattern.reduced_peak_bytes},
          {"reduced_peak_at_ns", nullable(pattern.reduced_peak_at_ns)},
          {"avoidable_peak_bytes", device.avoidable_peak_bytes(pattern)},
          {"rows", std::move(rows)},
          {"other_row_count", pattern.other_rows},
          {"other_held_at_peak_bytes", pattern.other_peak_bytes}};
}

Json device_json(const PatternsDevice& device) {
  const DeviceSummary& totals = device.totals;
  const auto& held = device.kept_into_next_step;
  return {{"device", to_string(totals.device)},
          {"peak_allocated_bytes", totals.peak_allocated_bytes},
          {"peak_allocated_at_ns", nullable(totals.peak_allocated_at_ns)},
          {"unrecorded_at_peak_bytes", device.unrecorded_at_peak_bytes()},
          {"lifetimes_at_peak", lifetimes_json(device)},
          {"advice", advice_json(device.advice)},
          {"kept_into_next_step", held ? pattern_json(device, *held) : Json(nullptr)},
          {"freed_after_allocation", pattern_json(device, device.freed_after_allocation)}};
}

}  // namespace

Json to_object(const Patterns& patterns) {
  Json object = recording_json(patterns.recording);
  object["steps"] = {{"source", name_of(patterns.steps_source)}, {"count", patterns.steps}};
  object["devices"] = Json::array();
  for (const PatternsDevice& device : patterns.devices) object["devices"].push_back(device_json(device));
  return object;
}

std::string to_json(std::span<const Patterns> results) {
  return print_all(results);
}

}  // namespace tidemark
