#include <array>
#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

namespace tidemark {
namespace {

constexpr std::array<const char*, kLifetimes> kLifetimeNames = {"never_freed", "temporary", "across_steps",
                                                                "within_step", "freed"};
constexpr std::array kSourceNames = {"none", "given", "annotation", "optimizer", "stack", "sizes"};

Json lifetimes_json(const PatternsDevice& device) {
  Json list = Json::array();
  for (std::size_t index = 0; index < kLifetimes; ++index) {
    if (device.held[index].blocks == 0) continue;
    list.push_back({{"lifetime", kLifetimeNames[index]},
                    {"bytes", device.held[index].bytes},
                    {"blocks", device.held[index].blocks}});
  }
  return list;
}

Json pattern_json(const PatternsDevice& device, const Pattern& pattern) {
  Json rows = Json::array();
  for (const PatternRow& row : pattern.rows) {
    rows.push_back({{"peak_bytes", row.peak_bytes},
                    {"peak_blocks", row.peak_blocks},
                    {"count", row.count},
                    {"bytes", row.bytes},
                    {"stack", stack_json(row.stack)}});
  }
  return {{"count", pattern.count},
          {"peak_bytes", pattern.peak_bytes},
          {"peak_without_bytes", pattern.peak_without_bytes},
          {"peak_without_at_ns", nullable(pattern.peak_without_at_ns)},
          {"saving_bytes", device.saving_bytes(pattern)},
          {"rows", std::move(rows)},
          {"other_rows", pattern.other_rows},
          {"other_peak_bytes", pattern.other_peak_bytes}};
}

Json device_json(const PatternsDevice& device) {
  const DeviceSummary& totals = device.totals;
  const auto& held = device.held_until_replaced;
  return {{"device", to_string(totals.device)},
          {"peak_allocated_bytes", totals.peak_allocated_bytes},
          {"peak_allocated_at_ns", nullable(totals.peak_allocated_at_ns)},
          {"unrecorded_at_peak_bytes", device.unrecorded_at_peak_bytes()},
          {"lifetimes_at_peak", lifetimes_json(device)},
          {"held_until_replaced", held ? pattern_json(device, *held) : Json(nullptr)},
          {"freed_after_allocation", pattern_json(device, device.freed_after_allocation)}};
}

}  // namespace

Json to_object(const Patterns& patterns) {
  Json object = recording_json(patterns.recording);
  object["steps"] = {{"source", kSourceNames[static_cast<std::size_t>(patterns.steps_source)]},
                     {"count", patterns.steps}};
  object["devices"] = Json::array();
  for (const PatternsDevice& device : patterns.devices) object["devices"].push_back(device_json(device));
  return object;
}

std::string to_json(std::span<const Patterns> results) {
  return print_all(results);
}

}  // namespace tidemark
