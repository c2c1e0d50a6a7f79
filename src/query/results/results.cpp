#include "query/results/results.h"

#include "query/analyses/analysis.h"
#include "query/results/machine_results.h"

namespace tidemark {
namespace {

// Results of commands that are no analysis of single recordings; another one is a line here.
void add_commands(DescribedResults& results) {
  const auto add = [&results]<typename Result>(std::type_identity<Result>, const char* command,
                                               DescribedCommand json = {}) {
    json.name = command;
    json.type = results.types.read<Result>(DescribedResults::module_of(command));
    results.commands.push_back(std::move(json));
  };
  add(std::type_identity<Comparison>(), "compare", {.in_python = true});
  add(std::type_identity<Simulation>(), "simulate", {.several = true, .in_python = true});
  add(std::type_identity<RestartVerdict>(), "restart", {.in_python = true});
  add(std::type_identity<Plan>(), "plan");
  add(std::type_identity<Fit>(), "plan-fit", {.title = "plan --fit"});
  add(std::type_identity<Verification>(), "plan-verify", {.title = "plan --verify"});
  add(std::type_identity<Sweep>(), "sweep");
  add(std::type_identity<ModelFacts>(), "model");
  add(std::type_identity<ProfileReport>(), "profile");
  add(std::type_identity<OomReport>(), "oom");
  add(std::type_identity<LeakReport>(), "leak");
  add(std::type_identity<FragmentReport>(), "fragment");
  add(std::type_identity<JobReport>(), "distributed");
  add(std::type_identity<CommandReport>(), "job-command", {.title = "job --command"});
  add(std::type_identity<History>(), "history");
  add(std::type_identity<Inventory>(), "devices");
  add(std::type_identity<Diagnosis>(), "doctor");
  add(std::type_identity<PerformanceReport>(), "performance", {.title = "PerformanceMonitor"});
  add(std::type_identity<DpSgdSweep>(), "dp-sgd-results", {.title = "sweep --preset dp-sgd"});
  add(std::type_identity<DpSgdComponents>(), "dp-sgd-details", {.title = "sweep --preset dp-sgd"});
}

}  // namespace

const DescribedResults& described_results() {
  static const DescribedResults kResults = [] {
    DescribedResults results;
    for (const Analysis& analysis : analyses()) {
      DescribedCommand command{analysis.name, analysis.describe(results.types), true, !analysis.table};
      if (analysis.name == "summary") command.type_of_several = results.types.read<JobSummary>("summary");
      results.commands.push_back(std::move(command));
    }
    add_commands(results);
    results.shared = {
        {"common",
         "What the results of several commands have. Names and meanings are those of the JSON that commands write.\n\n"
         "``bytes`` and ``..._bytes`` are bytes, ``..._at_ns`` nanoseconds from the recording's start, ``..._share`` "
         "fractions from\n0 to 1, ``..._count`` numbers of items. ``None``: not known, or not there.\n"},
        {"ledgers",
         "All memory of a GPU or of the host at one time, and processes that the kernel killed for lack of it."},
        {"monitors", "Devices, processes and risks as monitors see them."},
        {"trials", "Runs of a program with other arguments."}};
    return results;
  }();
  return kResults;
}

}  // namespace tidemark
