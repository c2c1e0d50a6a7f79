#include "report/common/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/sweep/dp_sgd.h"
#include "report/common/csv_field.h"

namespace tidemark {
namespace {

// The names of all phases, or kinds, that the reports have.
template <typename Part>
std::vector<std::string> names_of_all(const DpSgdSweep& result, std::vector<Part> DpSgdReport::*parts,
                                      std::string Part::*name) {
  std::vector<std::string> names;
  for (const std::optional<DpSgdReport>& report : result.reports) {
    if (!report) continue;
    for (const Part& part : *report.*parts) {
      if (std::find(names.begin(), names.end(), part.*name) == names.end()) names.push_back(part.*name);
    }
  }
  return names;
}

// "model loading" is the column "model_loading_peak_bytes".
std::string bytes_column(std::string name, const char* what) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return "," + csv_field(name + what);
}

}  // namespace

std::string to_csv(const DpSgdSweep& result) {
  const Sweep& sweep = result.sweep;
  const auto kinds = names_of_all(result, &DpSgdReport::kinds, &ParameterMemory::kind);
  const auto phases = names_of_all(result, &DpSgdReport::phases, &PhaseMemory::name);
  std::string text = "config,gpu";
  for (const VariedArgument& argument : sweep.arguments) text += "," + csv_field(argument.name);
  text += ",fits,peak_allocated_bytes,peak_reserved_bytes,device_used_bytes,per_sample_gradient_share";
  for (const std::string& kind : kinds) text += bytes_column(kind, "_bytes");
  for (const std::string& phase : phases) text += bytes_column(phase, "_peak_bytes");
  text += ",failure\n";
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    const SweepRow& configuration = sweep.rows[row];
    text += fmt::format("{},{}", row + 1, csv_field(sweep.gpus[configuration.gpu].name));
    for (const std::string& value : configuration.values) text += "," + (number_of(value) ? value : csv_field(value));
    const TrialResult trial = configuration.result.value_or(TrialResult());
    text += yes_field(trial.fits);
    for (const auto& bytes : {trial.peak_allocated_bytes, trial.peak_reserved_bytes, trial.device_used_bytes}) {
      text += number_field(bytes);
    }
    const auto share = result.per_sample_share(row);
    text += share ? fmt::format(",{:.6f}", *share) : ",";
    const DpSgdReport report = result.reports[row].value_or(DpSgdReport());
    for (const std::string& kind : kinds) text += number_field(report.bytes_of(kind));
    for (const std::string& name : phases) {
      const PhaseMemory* phase = report.phase(name);
      text += number_field(phase == nullptr ? std::nullopt : std::optional(phase->peak_bytes));
    }
    text += "," + csv_field(trial.failure) + "\n";
  }
  return text;
}

}  // namespace tidemark
