#include <array>
#include <utility>

#include "report/json/json.h"
#include "report/json/objects.h"

namespace tidemark {
namespace {

constexpr std::array kVerdicts = {"leak", "no_leak", "insufficient_data"};
constexpr std::array kSources = {"none", "given", "annotation", "optimizer", "stack", "sizes"};
constexpr std::array kFindings = {"leak", "too_few", "stopped", "slowing", "unclear", "with_work"};
constexpr std::array kDoubts = {"none", "no_events", "no_steps", "too_few_steps"};

template <typename Names, typename Enum>
const char* name(const Names& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

Json place_json(const LeakPlace& place) {
  const Growth& growth = place.growth;
  const bool rated = growth.finding != GrowthFinding::unclear;
  const bool counted = rated && growth.kind == GrowthKind::kept;
  return {{"device", to_string(place.device)},
          {"finding", name(kFindings, growth.finding)},
          {"kind", growth.kind == GrowthKind::kept ? "kept" : "replaced"},
          {"bytes_per_step", rated ? Json(growth.bytes_per_step.value) : Json(nullptr)},
          {"bytes_per_step_low", rated ? Json(growth.bytes_per_step.low) : Json(nullptr)},
          {"bytes_per_step_high", rated ? Json(growth.bytes_per_step.high) : Json(nullptr)},
          {"blocks_per_step", counted ? Json(growth.blocks_per_step) : Json(nullptr)},
          {"grown_steps", rated ? Json(growth.grown_steps) : Json(nullptr)},
          {"judged_steps", rated ? Json(growth.judged_steps) : Json(nullptr)},
          {"first_step", growth.first_step},
          {"first_step_ns", place.first_step_ns},
          {"last_step", growth.last_step},
          {"last_step_ns", place.last_step_ns},
          {"released_after_steps", growth.released_after == 0 ? Json(nullptr) : Json(growth.released_after)},
          {"held_bytes", place.held_bytes},
          {"held_blocks", place.held_blocks},
          {"requested_bytes", nullable(place.requested_bytes)},
          {"stack", stack_json(place.stack)}};
}

Json places_json(const std::vector<LeakPlace>& places) {
  Json list = Json::array();
  for (const LeakPlace& place : places) list.push_back(place_json(place));
  return list;
}

Json steps_json(const Leaks& leaks) {
  Json starts = Json::array();
  for (const TrainingSteps::Start& start : leaks.steps.starts) starts.push_back(start.time_ns);
  return {{"source", name(kSources, leaks.steps.source)},
          {"count", leaks.steps.starts.size()},
          {"warmup", leaks.warmup_steps},
          {"judged", leaks.judged_steps},
          {"regularity", leaks.steps.regularity > 0 ? Json(leaks.steps.regularity) : Json(nullptr)},
          {"anchor", stack_json(leaks.anchor)},
          {"mark", nullable(leaks.mark)},
          {"starts_ns", std::move(starts)}};
}

}  // namespace

Json to_object(const Leaks& leaks) {
  Json object = recording_json(leaks.recording);
  const bool judged = leaks.verdict != LeakVerdict::insufficient_data;
  object["verdict"] = name(kVerdicts, leaks.verdict);
  object["doubt"] = judged ? Json(nullptr) : Json(name(kDoubts, leaks.doubt));
  object["bytes_per_step"] = judged ? Json(leaks.bytes_per_step) : Json(nullptr);
  object["leaks"] = places_json(leaks.leaks);
  object["other_leaks"] = leaks.leak_count - leaks.leaks.size();
  object["growths"] = places_json(leaks.growths);
  object["other_growths"] = leaks.growth_count - leaks.growths.size();
  object["steps"] = steps_json(leaks);
  return object;
}

std::string to_json(std::span<const Leaks> leaks) {
  return print_all(leaks);
}

}  // namespace tidemark
