#include "cli/plan_conclusion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/reading.h"
#include "report/json/json.h"
#include "report/text/text.h"
#include "report/words/plan.h"

namespace tidemark::cli {
namespace {

Result<std::vector<PlannedRecording>> read_recordings(const std::vector<std::string>& files) {
  std::vector<PlannedRecording> recordings;
  std::vector<SampledDevice> devices;
  const auto load = [&devices](const std::string& path, const Progress& progress) {
    devices.clear();
    return open_overview(path, progress, [&devices](const SampleRecord& sample, const EventsSoFar&) {
      if (const auto* device = std::get_if<SampledDevice>(&sample)) devices.push_back(*device);
    });
  };
  const auto read = read_files(files, load, [&](const Overview& overview, Symbols& symbols) -> Result<void> {
    auto summary = analyze_summary(overview, symbols, {});
    if (!summary) return summary.error();
    recordings.push_back({std::move(*summary), devices});
    return {};
  });
  if (!read) return read.error();
  return recordings;
}

// Why the plan says nothing of the program; empty where it does.
std::string why_no_plan(const Plan& plan, const PlannedRun& run) {
  const PlanFacts& facts = plan.facts;
  if (!plan.devices.empty() && !plan.fits) return "";  // whatever it made of that
  const bool failed = !facts.stopped && facts.exit_code != 0;
  if (failed && run.out_of_host_memory) {
    return "the memory of this machine ended, and the kernel killed a process of the program; run the plan where more "
           "is "
           "free, or build the model on the device (torch.device(\"cuda\") as a context), which takes none";
  }
  if (facts.interrupted && plan.steps == 0) return "the program was interrupted before a training step was complete";
  if (failed && !facts.interrupted) {
    return facts.exit_code
               ? fmt::format("the program failed with exit code {} before the plan was complete", *facts.exit_code)
               : "a signal ended the program before the plan was complete";
  }
  if (plan.devices.empty()) {
    return "the program allocated no memory on a GPU, so there is no plan; does it select a CUDA device?";
  }
  if (run.steps_asked && plan.steps == 0) {
    return "no training step was found: no optimizer of torch.optim made one; --steps 0 plans the whole program, such "
           "as "
           "inference";
  }
  return "";
}

}  // namespace

int conclude(PlannedRun run, const std::string& format) {
  if (run.files.empty()) return fail("nothing was recorded, so there is no plan: " + run.why_nothing);
  const auto recordings = read_recordings(run.files);
  if (!recordings) return fail(recordings.error().message);
  const Plan plan = make_plan(std::move(run.facts), *recordings);
  if (const std::string why = why_no_plan(plan, run); !why.empty()) {
    std::error_code ignored;
    for (const std::string& file : run.files) std::filesystem::remove(file, ignored);
    return fail(why);
  }
  const int printed = print(format == "json" ? to_json(plan) : "\n" + to_text(plan, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : plan.fits ? kOk : kCheckFailed;
}

}  // namespace tidemark::cli
