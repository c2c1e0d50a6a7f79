#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

namespace tidemark {
namespace {

Json site_json(const LeakSite& site) {
  const Growth& growth = site.growth;
  const bool rated = growth.classification != GrowthClass::unclear;
  const bool counted = rated && growth.kind == GrowthKind::retained;
  return {{"device", to_string(site.device)},
          {"classification", name_of(growth.classification)},
          {"kind", name_of(growth.kind)},
          {"bytes_per_step", rated ? Json(growth.bytes_per_step.value) : Json(nullptr)},
          {"bytes_per_step_low", rated ? Json(growth.bytes_per_step.low) : Json(nullptr)},
          {"bytes_per_step_high", rated ? Json(growth.bytes_per_step.high) : Json(nullptr)},
          {"blocks_per_step", counted ? Json(growth.blocks_per_step) : Json(nullptr)},
          {"growing_step_count", rated ? Json(growth.grown_steps) : Json(nullptr)},
          {"analyzed_step_count", rated ? Json(growth.analyzed_steps) : Json(nullptr)},
          {"first_step", growth.first_step},
          {"first_step_ns", site.first_step_ns},
          {"last_step", growth.last_step},
          {"last_step_ns", site.last_step_ns},
          {"freed_after_steps", growth.released_after == 0 ? Json(nullptr) : Json(growth.released_after)},
          {"held_bytes", site.held_bytes},
          {"held_block_count", site.held_blocks},
          {"requested_bytes", nullable(site.requested_bytes)},
          {"stack_count", site.stack_ids.size()},
          {"stack", stack_json(site.stack)}};
}

Json sites_json(const std::vector<LeakSite>& sites) {
  Json list = Json::array();
  for (const LeakSite& site : sites) list.push_back(site_json(site));
  return list;
}

Json steps_json(const Leaks& leaks) {
  Json starts = Json::array();
  for (const TrainingSteps::Start& start : leaks.steps.starts) starts.push_back(start.time_ns);
  return {{"source", name_of(leaks.steps.source)},
          {"count", leaks.steps.starts.size()},
          {"warmup_count", leaks.warmup_steps},
          {"analyzed_count", leaks.analyzed_steps},
          {"regularity", leaks.steps.regularity > 0 ? Json(leaks.steps.regularity) : Json(nullptr)},
          {"anchor", stack_json(leaks.anchor)},
          {"mark", nullable(leaks.mark)},
          {"starts_ns", std::move(starts)}};
}

}  // namespace

Json to_object(const Leaks& leaks) {
  Json object = recording_json(leaks.recording);
  const bool judged = leaks.verdict != LeakVerdict::insufficient_data;
  object["verdict"] = name_of(leaks.verdict);
  object["insufficient_data_reason"] = judged ? Json(nullptr) : Json(name_of(leaks.insufficient));
  object["bytes_per_step"] = judged ? Json(leaks.bytes_per_step) : Json(nullptr);
  object["leaks"] = sites_json(leaks.leaks);
  object["other_leak_count"] = leaks.leak_count - leaks.leaks.size();
  object["min_growth_bytes_per_step"] = nullable(leaks.min_growth);
  object["small_leaks"] = sites_json(leaks.small_leaks);
  object["small_leaks_bytes_per_step"] = judged ? Json(leaks.small_bytes_per_step) : Json(nullptr);
  object["other_small_leak_count"] = leaks.small_leak_count - leaks.small_leaks.size();
  object["non_leak_growth"] = sites_json(leaks.non_leak_growth);
  object["other_non_leak_growth_count"] = leaks.non_leak_growth_count - leaks.non_leak_growth.size();
  object["steps"] = steps_json(leaks);
  return object;
}

std::string to_json(std::span<const Leaks> leaks) {
  return print_all(leaks);
}

}  // namespace tidemark
