// Trials of a program: a sweep of its arguments, the search for the largest value that fits, and DP-SGD training.
#include "query/words/sweep.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"

namespace tidemark {
namespace {

/// Types of a trial, shared by all results.
constexpr std::string_view kTrialTypes = "trials";

Keyed<std::string> values_of(const Sweep& sweep, const SweepRow& row) {
  Keyed<std::string> values;
  for (std::size_t index = 0; index < sweep.arguments.size(); ++index) {
    values.emplace_back(sweep.arguments[index].name, row.values[index]);
  }
  return values;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const TrialResult& result) {
  v.type("Trial", "What one run of the program took.", kTrialTypes);
  v.field("fits", result.fits, "null: it failed otherwise than for memory");
  v.field("peak_allocated_bytes", result.peak_allocated_bytes);
  v.field("peak_reserved_bytes", result.peak_reserved_bytes);
  v.field("device_used_bytes", result.device_used_bytes, "with the context");
  v.field("memory_bytes", result.memory_bytes, "of a device, as its driver reports it");
  v.field("out_of_memory", result.out_of_memory, "a request failed: the peaks are those until then");
  v.field("failure", known_text(result.failure), "why there is no result");
  v.field("duration_ns", result.duration_ns, "of the whole trial");
  v.field("host_bytes", result.host_bytes, "the highest resident memory of one of its processes");
  v.field("uncertain", result.uncertain, "what the figures do not say for certain, one sentence each");
}

template <typename Visitor>
void describe(Visitor& v, const VariedArgument& argument) {
  v.type("VariedArgument", "An argument whose values are tried.");
  v.field("name", argument.name);
  v.field("option", argument.option);
  v.field("values", argument.values);
}

template <typename Visitor>
void describe(Visitor& v, const SweptGpu& gpu) {
  v.type("SweptGpu", "A GPU for which the program is tried.");
  v.field("name", gpu.name);
  v.field("memory_bytes", gpu.memory_bytes);
  v.field("context_bytes", gpu.context_bytes, "of a planned GPU");
}

template <typename Visitor>
void describe(Visitor& v, const Prediction& prediction) {
  v.type("Prediction", "What the laws say of a combination that has no peaks of the whole program.");
  v.field("fits", prediction.fits);
  v.field("peak_allocated_bytes", prediction.peak_allocated_bytes);
  v.field("peak_reserved_bytes", prediction.peak_reserved_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const SweepRow& row, const Sweep& sweep) {
  using Held = Keyed<std::uint64_t>;
  v.type("SweepRow", "A combination of values.");
  v.field("gpu", [&] { return sweep.gpus[row.gpu].name; });
  v.field(
      "values", [&] { return values_of(sweep, row); }, "by argument");
  v.field(
      "group", [&] { return sweep.group_of(row); }, "index into `groups`");
  v.field("result", row.result, "null: it has not run");
  v.field(
      "categories",
      [&]() -> std::optional<Held> {
        if (!row.result || row.result->categories.empty()) return std::nullopt;
        Held held;
        for (const HeldByCategory& part : row.result->categories) {
          held.emplace_back(name_in(kCategoryNames, part.category), part.bytes);
        }
        return held;
      },
      "bytes by category, at the peak");
  v.field("prediction", row.prediction, "null where there is a result");
  v.field("folder", known_text(row.folder), "of the trial's files");
}

template <typename Visitor>
void describe(Visitor& v, const LawTerm& term, const Sweep& sweep) {
  v.type("LawTerm", "A product of arguments.");
  v.field(
      "powers",
      [&] {
        const std::vector<std::size_t> numeric = sweep.numeric();
        Keyed<int> powers;
        for (std::size_t index = 0; index < term.powers.size(); ++index) {
          if (term.powers[index] != 0) powers.emplace_back(sweep.arguments[numeric[index]].name, term.powers[index]);
        }
        return powers;
      },
      "by argument; empty: the constant");
  v.field("coefficients", term.coefficients, "bytes, by group; one for all groups where it is shared");
}

namespace {

// The fields of a law, which other objects have too.
template <typename Visitor>
void describe_law(Visitor& v, const Law& law, const Sweep& sweep) {
  v.field(
      "text", [&] { return law_text(sweep, law); }, "a formula; several where groups differ");
  v.field("terms", in(law.terms(), sweep));
  v.field("trial_count", law.points());
  v.field(
      "median_error_share", [&] { return law.median_error_share(); }, "of trials predicted from the others");
  v.field("largest_error_share", [&] { return law.largest_error_share(); });
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const Law& law, const Sweep& sweep) {
  v.type("Law", "Memory as a function of the arguments.");
  describe_law(v, law, sweep);
}

template <typename Visitor>
void describe(Visitor& v, const CategoryLaw& of, const Sweep& sweep) {
  v.type("CategoryLaw", "What a category holds at the peak, as a function of the arguments.");
  v.field("category", named<kCategoryNames>(of.category));
  describe_law(v, of.law, sweep);
}

namespace {

struct LawsOf {};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const Sweep& sweep, const LawsOf& /*tag*/) {
  v.type("Laws", "Memory as functions of the arguments; null: too few trials.");
  v.field("peak_allocated_bytes", in(sweep.allocated, sweep));
  v.field("peak_reserved_bytes", in(sweep.reserved, sweep));
  v.field("by_category", in(when(!sweep.by_category.empty(), sweep.by_category), sweep));
}

template <typename Visitor>
void describe(Visitor& v, const Sweep& sweep) {
  v.type("Sweep", "A program tried with combinations of arguments.");
  v.field("program", sweep.program, "with its placeholders");
  v.field("arguments", sweep.arguments);
  v.field("gpus", sweep.gpus);
  v.field("groups", sweep.groups(),
          "that laws may tell apart: the values of arguments that are no numbers, and the GPU");
  v.field("rows", in(sweep.rows, sweep), "by GPU; the last argument changes fastest");
  v.field("laws", in(sweep, LawsOf()));
}
TIDEMARK_DESCRIBED(Sweep);

template <typename Visitor>
void describe(Visitor& v, const FitTrial& trial) {
  v.type("FitTrial", "A value that was tried.");
  v.field("value", trial.value);
  v.part(trial.result);
}

template <typename Visitor>
void describe(Visitor& v, const Fit& fit, const LawsOf& /*tag*/) {
  v.type("Fit", "The largest value of an argument that fits.");
  v.field("name", fit.name);
  v.field("option", fit.option);
  v.field("largest", fit.largest(), "that was tried and fits");
  v.field("low", fit.range.low);
  v.field("high", fit.range.high);
  v.field("step", fit.range.step);
  v.field("gpu", fit.gpu);
  v.field("memory_bytes", fit.memory_bytes, "of each device");
  v.field("margin_share", fit.margin_share, "of the memory, that must stay free");
  v.field("limit_bytes", fit.limit_bytes, "memory less the margin");
  v.field("monotone", fit.monotone(), "no larger value took less memory than a smaller one");
  v.field("trials", fit.trials, "in the order in which they ran");
}

template <typename Visitor>
void describe(Visitor& v, const Fit& fit) {
  v.type("FitDocument", "What `plan --fit` found.");
  v.field("fit", in(fit, LawsOf()));
}
TIDEMARK_DESCRIBED(Fit);

template <typename Visitor>
void describe(Visitor& v, const PhaseMemory& phase) {
  v.type("PhaseMemory", "Memory of a phase.", kTrialTypes);
  v.field("end_bytes", phase.end_bytes, "allocated at its end");
  v.field("peak_bytes", phase.peak_bytes, "allocated at most during it");
}

namespace {

// A row of a DP-SGD sweep.
struct Configuration {
  std::size_t row = 0;
};
struct ConfigurationDetails {
  std::size_t row = 0;
};

template <typename Visitor>
void describe_configuration(Visitor& v, std::size_t number, const DpSgdSweep& result) {
  const auto row = [&, number]() -> const SweepRow& { return result.sweep.rows[number]; };
  v.field("config", number + 1, "as files name it");
  v.field("gpu", [&, row] { return result.sweep.gpus[row().gpu].name; });
  v.field("arguments", [&, row] { return values_of(result.sweep, row()); });
  v.field("folder", [row] {
    const std::string& folder = row().folder;
    return folder.empty() ? std::optional<std::string>() : std::optional(folder);
  });
}

const DpSgdReport* report_of(const DpSgdSweep& result, std::size_t row) {
  return row < result.reports.size() && result.reports[row] ? &*result.reports[row] : nullptr;
}

Keyed<PhaseMemory> phases_of(const DpSgdReport& report) {
  Keyed<PhaseMemory> phases;
  for (const PhaseMemory& phase : report.phases) phases.emplace_back(phase.name, phase);
  return phases;
}

Keyed<Keyed<std::uint64_t>> components_of(const DpSgdReport& report) {
  Keyed<Keyed<std::uint64_t>> kinds;
  for (const ParameterMemory& memory : report.kinds) {
    Keyed<std::uint64_t>& components = kinds.emplace_back(memory.kind, Keyed<std::uint64_t>()).second;
    for (const ComponentBytes& component : memory.components) components.emplace_back(component.name, component.bytes);
  }
  return kinds;
}

template <typename Visitor>
void describe(Visitor& v, const Configuration& configuration, const DpSgdSweep& result) {
  const std::size_t row = configuration.row;
  const DpSgdReport* report = report_of(result, row);
  const bool ran = row < result.sweep.rows.size();
  v.type("DpSgdConfiguration", "Peaks and phases of a configuration.");
  describe_configuration(v, row, result);
  v.field("result", ran ? result.sweep.rows[row].result : std::optional<TrialResult>());
  v.field("per_sample_gradient_bytes",
          report == nullptr ? std::optional<std::uint64_t>() : report->bytes_of(kPerSampleGradients));
  v.field(
      "per_sample_gradient_share", [&] { return result.per_sample_share(row); }, "of the allocated peak");
  v.field("phases", when(report != nullptr, [&] { return phases_of(*report); }));
  v.field("torch", when(report != nullptr && !report->torch_version.empty(), [&] { return report->torch_version; }));
  v.field("opacus", when(report != nullptr && !report->opacus_version.empty(), [&] { return report->opacus_version; }));
}

template <typename Visitor>
void describe(Visitor& v, const ConfigurationDetails& configuration, const DpSgdSweep& result) {
  const DpSgdReport* report = report_of(result, configuration.row);
  v.type("DpSgdDetails", "What hung on the parameters of a configuration.");
  describe_configuration(v, configuration.row, result);
  v.field("components", when(report != nullptr, [&] { return components_of(*report); }),
          "bytes by kind and component, before the optimizer step where they were most");
  v.field("phases", when(report != nullptr, [&] { return phases_of(*report); }));
}

template <typename Row, typename Visitor>
void describe_configurations(Visitor& v, const DpSgdSweep& result) {
  std::vector<Row> rows;
  for (std::size_t row = 0; row < result.sweep.rows.size(); ++row) rows.push_back({row});
  v.field("preset", one_of<"dp-sgd">("dp-sgd"));
  v.field("model", result.model);
  v.field("program", result.sweep.program);
  v.field("configurations", in(rows, result));
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const DpSgdSweep& result) {
  v.type("DpSgdResults", "Peaks and phases of each configuration.");
  describe_configurations<Configuration>(v, result);
}
TIDEMARK_DESCRIBED(DpSgdSweep);

template <typename Visitor>
void describe(Visitor& v, const DpSgdComponents& details) {
  static const DpSgdSweep kNone;
  v.type("DpSgdAllDetails", "Phases of each configuration, and what hung on the parameters, by component.");
  describe_configurations<ConfigurationDetails>(v, details.sweep == nullptr ? kNone : *details.sweep);
}
TIDEMARK_DESCRIBED(DpSgdComponents);

}  // namespace tidemark
