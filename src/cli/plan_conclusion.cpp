#include "cli/plan_conclusion.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "cli/reading.h"
#include "query/results/results.h"
#include "query/words/plan.h"
#include "report/common/text.h"

namespace tidemark::cli {
namespace {

Result<std::vector<PlannedRecording>> read_recordings(const std::vector<std::string>& files, bool with_owners) {
  std::vector<PlannedRecording> recordings;
  std::vector<SampledDevice> devices;
  SummaryOptions what;
  const auto load = [&](const std::string& path, const Progress& progress) {
    devices.clear();
    auto overview = open_overview(path, progress, [&devices](const SampleRecord& sample, const EventsSoFar&) {
      if (const auto* device = std::get_if<SampledDevice>(&sample)) devices.push_back(*device);
    });
    if (overview && with_owners) what.owners = take_owners(path, make_progress, ComponentRules::built_in(), *overview);
    return overview;
  };
  const auto read = read_files(files, load, [&](const Overview& overview, Symbols& symbols) -> Result<void> {
    auto summary = analyze_summary(overview, symbols, what);
    if (!summary) return summary.error();
    recordings.push_back({std::move(*summary), devices});
    return {};
  });
  if (!read) return read.error();
  return recordings;
}

// The latest request for host memory that PyTorch could not get.
std::optional<std::uint64_t> refused_host_bytes(const std::vector<PlannedRecording>& recordings) {
  std::optional<std::uint64_t> bytes;
  for (const PlannedRecording& recording : recordings) {
    for (const SummaryOutOfMemory& failure : recording.summary.out_of_memory) {
      if (failure.device.type == DeviceType::cpu) bytes = failure.event.requested;
    }
  }
  return bytes;
}

// Why a program that ended before its plan was complete did so.
std::string failure_text(const PlannedRun& run, const std::vector<PlannedRecording>& recordings) {
  constexpr const char* kAdvice =
      "run the plan where more is free, or build the model on the device (torch.device(\"cuda\") as a context), which "
      "takes none";
  const bool killed = run.ending_signal == SIGKILL || run.facts.exit_code == 128 + SIGKILL;
  if (run.oom_kills != 0 && run.kills_of_own_group && killed)
    return fmt::format("host memory ran out, and the kernel killed the program; {}", kAdvice);
  std::string text = run.facts.exit_code ? fmt::format("the program failed with exit code {}", *run.facts.exit_code)
                                         : fmt::format("signal {} ended the program", run.ending_signal.value_or(0));
  text += " before the plan was complete";
  if (run.oom_kills != 0) {
    return fmt::format(
        "{}; meanwhile the kernel killed a process of {} for lack of memory, which may be one of the "
        "program's: {}",
        text, run.kills_of_own_group ? "its control group" : "this machine", kAdvice);
  }
  if (const auto bytes = refused_host_bytes(recordings)) {
    return fmt::format("{}; PyTorch could not allocate {} of host memory: {}", text, format_bytes(*bytes), kAdvice);
  }
  if (run.facts.reads != 0) {
    return text +
           "; it had read results from the GPU, which no kernel computes in a plan: they are zeros. Where its last "
           "message comes of that, let it go on with any value";
  }
  return text;
}

// Why the plan says nothing of the program; empty where it does.
std::string why_no_plan(const Plan& plan, const PlannedRun& run, const std::vector<PlannedRecording>& recordings) {
  const PlanFacts& facts = plan.facts;
  if (!plan.devices.empty() && !plan.fits) return "";  // whatever it made of that
  if (!run.own_runtime.empty()) {
    return fmt::format(
        "{} has a CUDA runtime of its own, linked statically or of another version than PyTorch's, and "
        "what it would take cannot be planned; build it with the shared runtime of PyTorch's CUDA version "
        "(nvcc --cudart shared)",
        run.own_runtime);
  }
  if (facts.interrupted && plan.steps == 0) return "the program was interrupted before a training step was complete";
  if (!facts.stopped && facts.exit_code != 0 && !facts.interrupted) return failure_text(run, recordings);
  if (run.files.empty()) return "nothing was recorded, so there is no plan: " + run.why_nothing;
  if (plan.devices.empty()) {
    return "the program allocated no memory on a GPU, so there is no plan; does it select a CUDA device?";
  }
  if (run.steps_asked && plan.steps == 0) {
    return "no training step was found: no optimizer of torch.optim made one, and the program marks none "
           "(tidemark_mark(\"step\")); --steps 0 plans the whole program, such as inference";
  }
  return "";
}

}  // namespace

int conclude(const PlannedRun& run, const std::string& format) {
  const auto recordings = read_recordings(run.files, format != "json");
  if (!recordings) return fail(recordings.error().message);
  const Plan plan = make_plan(run.facts, *recordings);
  if (const std::string why = why_no_plan(plan, run, *recordings); !why.empty()) {
    std::error_code ignored;
    for (const std::string& file : run.files) std::filesystem::remove(file, ignored);
    return fail(why);
  }
  const int printed = print(format == "json" ? to_json(plan) : "\n" + to_text(plan, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : plan.fits ? kOk : kCheckFailed;
}

}  // namespace tidemark::cli
