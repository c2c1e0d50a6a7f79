#include "report/common/json.h"

#include "analyze/plan/simulation.h"
#include "report/common/json_parts.h"
#include "report/simulation/words.h"

namespace tidemark {
namespace {

Json state_json(const AllocatorState& state) {
  return {{"allocated_bytes", nullable(state.allocated)},
          {"reserved_bytes", nullable(state.reserved)},
          {"largest_free_bytes", nullable(state.largest_free)},
          {"free_block_count", nullable(state.free_blocks)}};
}

Json outcome_json(const AllocatorOutcome& outcome) {
  return {{"peak_allocated_bytes", outcome.peak_allocated},
          {"peak_reserved_bytes", outcome.peak_reserved},
          {"peak_active_bytes", nullable(outcome.peak_active)},
          {"peak_inactive_split_bytes", nullable(outcome.peak_inactive_split)},
          {"retry_count", nullable(outcome.retries)},
          {"segment_count", nullable(outcome.segments)},
          {"end_segment_count", nullable(outcome.end_segments)},
          {"at_recorded_peak", state_json(outcome.at_peak)},
          {"at_end", state_json(outcome.at_end)}};
}

Json run_json(const Simulation& simulation, const SimulatedSettings& run) {
  Json devices = Json::array();
  for (std::size_t index = 0; index < run.devices.size(); ++index) {
    Json device = {{"device", to_string(simulation.devices[index].device)}};
    device.update(outcome_json(run.devices[index]));
    devices.push_back(std::move(device));
  }
  return {{"settings", run.settings},
          {"peak_reserved_bytes", run.peak_reserved()},
          {"saved_bytes", nullable(simulation.saving(run))},
          {"retry_count", run.retries()},
          {"out_of_memory_at_ns", nullable(run.out_of_memory_ns)},
          {"passed_failure_count", run.passed_failures},
          {"devices", std::move(devices)}};
}

Json to_object(const Simulation& simulation) {
  Json object = recording_json(simulation.recording);
  object["replayed_by"] = simulation.torch_version.empty() ? "model" : "pytorch";
  object["torch_version"] = nullable_text(simulation.torch_version);
  object["settings_known"] = simulation.settings_known;
  object["sizes_known"] = simulation.exact_sizes;
  object["start_block_count"] = simulation.blocks_at_start;
  object["failed_request_count"] = simulation.recorded_failures;
  object["limit_by_fraction"] = simulation.limit_by_fraction;
  object["devices"] = Json::array();
  for (const SimulatedDevice& device : simulation.devices) {
    object["devices"].push_back({{"device", to_string(device.device)},
                                 {"limit_bytes", nullable(device.limit)},
                                 {"recorded", outcome_json(device.recorded)}});
  }
  object["reserved_error_bytes"] = simulation.reserved_error();
  object["as_recorded"] = run_json(simulation, simulation.check);
  object["runs"] = Json::array();
  for (const SimulatedSettings& run : simulation.runs) object["runs"].push_back(run_json(simulation, run));
  object["notes"] = simulation_sentences(simulation);
  return object;
}

}  // namespace

std::string to_json(std::span<const Simulation> simulations) {
  std::vector<Json> objects;
  for (const Simulation& simulation : simulations) objects.push_back(to_object(simulation));
  return print_json(std::move(objects));
}

}  // namespace tidemark
