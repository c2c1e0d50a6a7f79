#include "cli/plan_verify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "analyze/plan/verification.h"
#include "base/scratch_folder.h"
#include "cli/command.h"
#include "cli/record_program.h"
#include "cli/stdout_to_stderr.h"
#include "plan/driver_profile.h"
#include "plan/planned_job.h"
#include "query/results/results.h"
#include "report/common/text.h"
#include "sweep/trials.h"

namespace tidemark::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> trial_recordings(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tide") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

Result<std::vector<DeviceEvents>> plan_events(const VerifyRequest& request, const std::string& folder) {
  const TrialRequest trial{request.gpu, request.options, request.command};
  StopSignals signals;
  const auto result = run_trial(trial, folder, signals);
  if (!result) return result.error();
  if (signals.take()) return Error{"stopped before the plan was made"};
  if (!(*result)->failure.empty()) return Error{(*result)->failure};
  return read_gpu_events(trial_recordings(folder));
}

// Runs the program on the GPU of this machine until it has done what the plan did; ends it then.
class RealRun {
 public:
  RealRun(const std::vector<DeviceEvents>& planned, std::string folder)
      : planned_(planned), folder_(std::move(folder)) {}

  // None where the recording failed, which was said.
  std::optional<std::vector<DeviceEvents>> record(const std::vector<std::string>& command) {
    ProgramOptions program;
    program.recorder.output = folder_ + "/real.tide";
    program.recorder.stack_mode = "none";
    program.recorder.attribute = false;
    program.recorder.samples.enabled = false;
    program.command = command;
    program.only_recorded = true;
    program.watch = [this](const ChildProcess& child) { look(child); };
    record_program(
        program, [](const Recorder&) {}, [](const ChildProcess&) { return kOk; });
    auto events = read_gpu_events(trial_recordings(folder_));
    if (!events) {
      fail(events.error().message);
      return std::nullopt;
    }
    return std::move(*events);
  }

 private:
  // Reading takes longer, the more is there: a tenth of the time at most.
  void look(const ChildProcess& child) {
    if (Clock::now() < next_look_ || complete_) return;
    const auto began = Clock::now();
    const auto events = read_gpu_events(trial_recordings(folder_));
    complete_ = events && reaches(*events, planned_);
    if (complete_) PlannedJob::end_rest(child.witness());
    next_look_ = Clock::now() + std::max<Clock::duration>(std::chrono::milliseconds(200), 9 * (Clock::now() - began));
  }

  const std::vector<DeviceEvents>& planned_;
  std::string folder_;
  Clock::time_point next_look_ = Clock::now();
  bool complete_ = false;
};

}  // namespace

int verify_plan(const VerifyRequest& request) {
  const auto here = profile_of_this_machine();
  if (!here) return fail("--verify runs the program on a GPU of this machine too: " + here.error().message);
  const auto gpu = find_gpu_profile(request.gpu);
  if (!gpu) return fail(gpu.error().message);
  if (gpu->full_name != here->full_name) {
    return fail(fmt::format("--verify: this machine has another GPU than the plan is for, {}; leave --gpu out",
                            here->full_name));
  }
  const auto plan_folder = ScratchFolder::create("tidemark-trial");
  if (!plan_folder) return fail(plan_folder.error().message);
  const auto real_folder = ScratchFolder::create("tidemark-trial");
  if (!real_folder) return fail(real_folder.error().message);
  const auto planned = plan_events(request, plan_folder->path());
  if (!planned) return fail(planned.error().message);
  RealRun run(*planned, real_folder->path());
  std::optional<StdoutToStderr> moved;
  if (request.json) moved.emplace();
  const auto real = run.record(request.command);
  moved.reset();
  if (!real) return kError;
  if (real->empty()) return fail("the program allocated no memory on the GPU of this machine, so nothing is compared");
  const Verification verification = verify(*planned, *real);
  const int printed =
      print(request.json ? to_json(verification) : to_text(verification, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : verification.within_tolerance ? kOk : kCheckFailed;
}

}  // namespace tidemark::cli
