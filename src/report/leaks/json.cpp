#include "report/common/json.h"

#include <string>
#include <utility>

#include "report/common/attribution.h"
#include "report/common/json_objects.h"
#include "report/leaks/words.h"

namespace tidemark {
namespace {

Json owners_json(const GrowthByOwner& growth) {
  const auto numbers = [](Json object, const OwnedGrowth& row) {
    object["bytes_per_step"] = row.bytes_per_step;
    object["held_bytes"] = row.held_bytes;
    object["held_block_count"] = row.held_blocks;
    return object;
  };
  Json rows = Json::array();
  for (const OwnedGrowth& row : growth.rows) {
    const std::string key(name_in(kOwnerKindNames, growth.kind));
    rows.push_back(numbers({{key, nullable(row.owner.name)}}, row));
  }
  return {{plural_of(growth.kind), std::move(rows)},
          {std::string("other_") + plural_of(growth.kind), numbers({{"count", growth.other_rows}}, growth.other)}};
}

Json mistake_json(const LeakObject& object) {
  const MatchedMistake& mistake = object.mistake;
  if (mistake.mistake == UsualMistake::none) return nullptr;
  return {{"name", name_of(mistake.mistake)},
          {"known_as", name_in(kConfidenceNames, mistake.known_as)},
          {"advice", usual_mistake_text(mistake.mistake, object.device)}};
}

Json object_json(const LeakObject& object) {
  const Growth& growth = object.growth;
  const bool joined = object.kind != LeakObjectKind::call_site;
  Json json = {{"kind", name_of(object.kind)},
               {"known_as", name_in(kConfidenceNames, object.known_as())},
               {"device", to_string(object.device)},
               {"bytes_per_step", growth.bytes_per_step.value},
               {"bytes_per_step_low", growth.bytes_per_step.low},
               {"bytes_per_step_high", growth.bytes_per_step.high},
               {"blocks_per_step", growth.kind == GrowthKind::retained ? Json(growth.blocks_per_step) : Json(nullptr)},
               {"growing_step_count", growth.grown_steps},
               {"analyzed_step_count", growth.analyzed_steps},
               {"first_step", growth.first_step},
               {"first_step_ns", object.first_step_ns},
               {"last_step", growth.last_step},
               {"last_step_ns", object.last_step_ns},
               {"held_bytes", object.held_bytes},
               {"held_block_count", object.held_blocks},
               {"leak_count", object.leaks},
               {"perhaps_input", object.perhaps_input},
               {"mistake", mistake_json(object)},
               {"retained_by", joined ? stack_json(object.last) : Json(nullptr)},
               {"caller", object.caller ? frame_json(*object.caller) : Json(nullptr)}};
  for (const GrowthByOwner& owners : object.owners) json.update(owners_json(owners));
  return json;
}

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

Json leaks_json(const Leaks& leaks) {
  Json list = sites_json(leaks.leaks);
  for (std::size_t index = 0; index < leaks.leaks.size(); ++index) list[index]["group"] = leaks.leaks[index].object;
  return list;
}

Json groups_json(const Leaks& leaks) {
  Json list = Json::array();
  for (const LeakObject& object : leaks.objects) list.push_back(object_json(object));
  return list;
}

// As asked for; null where nothing was.
Json by_json(const Leaks& leaks) {
  if (leaks.owners.empty()) return nullptr;
  Json list = Json::array();
  for (const DeviceOwners& owners : leaks.owners) {
    Json object = {{"device", to_string(owners.device)}};
    object.update(owners_json(owners.growth));
    list.push_back(std::move(object));
  }
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
  object["groups"] = groups_json(leaks);
  object["other_group_count"] = leaks.object_count - leaks.objects.size();
  object["leaks"] = leaks_json(leaks);
  object["other_leak_count"] = leaks.leak_count - leaks.leaks.size();
  object["min_growth_bytes_per_step"] = nullable(leaks.min_growth);
  object["small_leaks"] = sites_json(leaks.small_leaks);
  object["small_leaks_bytes_per_step"] = judged ? Json(leaks.small_bytes_per_step) : Json(nullptr);
  object["other_small_leak_count"] = leaks.small_leak_count - leaks.small_leaks.size();
  object["non_leak_growth"] = sites_json(leaks.non_leak_growth);
  object["other_non_leak_growth_count"] = leaks.non_leak_growth_count - leaks.non_leak_growth.size();
  object["by"] = by_json(leaks);
  object["steps"] = steps_json(leaks);
  return object;
}

std::string to_json(std::span<const Leaks> leaks) {
  return print_all(leaks);
}

}  // namespace tidemark
