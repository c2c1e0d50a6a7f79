#include "report/common/json.h"

#include <utility>

#include "analyze/sweep/dp_sgd.h"
#include "report/sweep/json_parts.h"

namespace tidemark {
namespace {

Json phases_json(const DpSgdReport& report) {
  Json phases = Json::object();
  for (const PhaseMemory& phase : report.phases) {
    phases[phase.name] = {{"end_bytes", phase.end_bytes}, {"peak_bytes", phase.peak_bytes}};
  }
  return phases;
}

Json components_json(const DpSgdReport& report) {
  Json kinds = Json::object();
  for (const ParameterMemory& memory : report.kinds) {
    Json components = Json::object();
    for (const ComponentBytes& component : memory.components) components[component.name] = component.bytes;
    kinds[memory.kind] = std::move(components);
  }
  return kinds;
}

// What both files say of a configuration first.
Json configuration_json(const Sweep& sweep, std::size_t row) {
  const SweepRow& configuration = sweep.rows[row];
  return {{"config", row + 1},
          {"gpu", sweep.gpus[configuration.gpu].name},
          {"arguments", values_json(sweep, configuration)},
          {"folder", nullable_text(configuration.folder)}};
}

template <typename OfRow>
std::string print_configurations(const DpSgdSweep& result, const OfRow& of_row) {
  Json configurations = Json::array();
  for (std::size_t row = 0; row < result.sweep.rows.size(); ++row) configurations.push_back(of_row(row));
  return print_json({{{"preset", "dp-sgd"},
                      {"model", result.model},
                      {"program", result.sweep.program},
                      {"configurations", std::move(configurations)}}});
}

}  // namespace

std::string dp_sgd_results_json(const DpSgdSweep& result) {
  return print_configurations(result, [&result](std::size_t row) {
    const std::optional<DpSgdReport>& report = result.reports[row];
    const std::optional<TrialResult>& trial = result.sweep.rows[row].result;
    Json object = configuration_json(result.sweep, row);
    object["result"] = trial ? trial_json(*trial) : Json(nullptr);
    object["per_sample_gradient_bytes"] = report ? nullable(report->bytes_of(kPerSampleGradients)) : Json(nullptr);
    object["per_sample_gradient_share"] = nullable(result.per_sample_share(row));
    object["phases"] = report ? phases_json(*report) : Json(nullptr);
    object["torch"] = report ? nullable_text(report->torch_version) : Json(nullptr);
    object["opacus"] = report ? nullable_text(report->opacus_version) : Json(nullptr);
    return object;
  });
}

std::string dp_sgd_details_json(const DpSgdSweep& result) {
  return print_configurations(result, [&result](std::size_t row) {
    const std::optional<DpSgdReport>& report = result.reports[row];
    Json object = configuration_json(result.sweep, row);
    object["components"] = report ? components_json(*report) : Json(nullptr);
    object["phases"] = report ? phases_json(*report) : Json(nullptr);
    return object;
  });
}

}  // namespace tidemark
