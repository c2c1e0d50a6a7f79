// tidemark plan: runs a program on a simulated GPU, and predicts its memory usage.
#include "analyze/plan/plan.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/plan/verification.h"
#include "analyze/sweep/fit.h"
#include "base/output_file.h"
#include "base/scoped_fd.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/plan_need.h"
#include "cli/reading.h"
#include "cli/record_program.h"
#include "launch/interpreter_probe.h"
#include "plan/gpu_profiles.h"
#include "plan/phantom_run.h"
#include "plan/phantom_source.h"
#include "plan/planned_job.h"
#include "query/results/results.h"
#include "query/words/plan.h"
#include "query/words/sweep.h"
#include "report/common/text.h"
#include "sweep/arguments.h"
#include "sweep/trials.h"

namespace tidemark::cli {

namespace {

/// During its lifetime, redirects stdout of this process, and of programs that it starts, to stderr.
class StdoutToStderr {
 public:
  StdoutToStderr() : kept_(::dup(STDOUT_FILENO)) { ::dup2(STDERR_FILENO, STDOUT_FILENO); }
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr() { ::dup2(kept_.get(), STDOUT_FILENO); }

 private:
  ScopedFd kept_;
};

struct VerifyRequest {
  std::vector<std::string> options;  ///< further ones of the plan
  std::string gpu;                   ///< --gpu; must be the one of this machine
  std::vector<std::string> command;  ///< the program
  bool json = false;
};

/// Plans the program, runs it for as many events as the plan has, compares and prints. The exit code.
int verify_plan(const VerifyRequest& request);

using Clock = std::chrono::steady_clock;

Result<std::vector<DeviceEvents>> plan_events(const VerifyRequest& request, const std::string& folder) {
  const TrialRequest trial{request.gpu, request.options, request.command};
  StopSignals signals;
  const auto result = run_trial(trial, folder, signals);
  if (!result) return result.error();
  if (signals.take()) return Error{"stopped before the plan was made"};
  if (!(*result)->failure.empty()) return Error{(*result)->failure};
  return read_gpu_events(recordings_in(folder));
}

// Runs the program on the GPU of this machine until it has reached the end of the plan, and ends it.
class RealRun {
 public:
  RealRun(const std::vector<DeviceEvents>& planned, std::string folder)
      : planned_(planned), folder_(std::move(folder)) {}

  // nullopt if the recording failed, with a message.
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
    auto events = read_gpu_events(recordings_in(folder_));
    if (!events) {
      fail(events.error().message);
      return std::nullopt;
    }
    return std::move(*events);
  }

 private:
  // Reading time grows with the recording: limited to a tenth of the time.
  void look(const ChildProcess& child) {
    if (Clock::now() < next_look_ || complete_) return;
    const auto began = Clock::now();
    const auto events = read_gpu_events(recordings_in(folder_));
    complete_ = events && reaches(*events, planned_);
    if (complete_) PlannedJob::end_remaining(child.witness());
    next_look_ = Clock::now() + std::max<Clock::duration>(std::chrono::milliseconds(200), 9 * (Clock::now() - began));
  }

  const std::vector<DeviceEvents>& planned_;
  std::string folder_;
  Clock::time_point next_look_ = Clock::now();
  bool complete_ = false;
};

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

struct FitRequest {
  std::string argument;     ///< as parse_fitted() takes it
  double margin_share = 0;  ///< of the memory that must stay free
  GpuProfile gpu;
  std::string gpu_option;            ///< as --gpu names it
  std::uint64_t memory_bytes = 0;    ///< of each device
  std::vector<std::string> options;  ///< further ones of each plan
  std::vector<std::string> command;  ///< the program
  bool json = false;
};

/// Plans until the answer is known and prints it. Returns the exit code.
int fit_plan(const FitRequest& request);

void say_trial(const Fit& fit, const FitTrial& trial) {
  say_printable(fmt::format("{} {}: {}", fit.name, trial.value, outcome_text(trial.result)));
}

int fit_plan(const FitRequest& request) {
  auto fitted = parse_fitted(request.argument);
  if (!fitted) return fail("--fit " + fitted.error().message);
  Fit fit;
  fit.name = fitted->argument.name;
  fit.option = fitted->argument.option;
  fit.range = fitted->range;
  fit.gpu = request.gpu.name;
  fit.memory_bytes = request.memory_bytes;
  fit.margin_share = request.margin_share;
  fit.limit_bytes = static_cast<std::uint64_t>(static_cast<double>(request.memory_bytes) * (1 - request.margin_share));
  const auto program = VariedProgram::create(request.command, {std::move(fitted->argument)});
  if (!program) return fail(program.error().message);
  const auto folder = ScratchFolder::create("tidemark-trial");
  if (!folder) return fail(folder.error().message);

  TrialRequest trial{request.gpu_option, request.options, {}};
  trial.options.push_back(fmt::format("--memory={}", fit.limit_bytes));
  std::string problem;
  {
    StopSignals signals;
    find_largest(fit, [&](std::uint64_t value) -> std::optional<TrialResult> {
      if (!fit.trials.empty()) say_trial(fit, fit.trials.back());
      const std::string text = std::to_string(value);
      trial.command = program->with({&text, 1});
      auto result = run_trial(trial, folder->path(), signals);
      if (result) return std::move(*result);
      problem = result.error().message;
      return std::nullopt;
    });
    static_cast<void>(signals.take());  // reported below
  }
  if (!problem.empty()) return fail(problem);
  if (fit.stopped) return fail("stopped before the answer was known");
  if (const auto largest = fit.largest()) {
    const std::string text = std::to_string(*largest);
    fit.command = program->with({&text, 1});
  }
  const TrialResult& first = fit.trials.front().result;
  if (!first.fits) return fail(fmt::format("{} {}: {}", fit.name, fit.trials.front().value, first.failure));
  const int printed = print(request.json ? to_json(fit) : to_text(fit, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : fit.largest() ? kOk : kCheckFailed;
}

/// Result of the run, besides the plan's.
struct PlannedRun {
  PlanFacts facts;
  std::vector<std::string> files;         ///< recordings
  std::string no_recording_reason;        ///< why there are none
  bool steps_asked = true;                ///< whether the plan is of training steps, not of a whole program
  std::optional<int> ending_signal = {};  ///< of the program
  std::uint64_t oom_kills = 0;            ///< processes that the kernel has killed meanwhile for lack of memory
  bool kills_of_own_group = false;        ///< they were in the control group of this process; otherwise anywhere
  std::string own_runtime = {};           ///< path of a library with a separate CUDA runtime; empty: none
};

/// What the planned program needs, if that can be found; called for a program that does not fit.
using FindNeed = std::function<std::optional<PlanNeed>(const Plan& plan)>;

/// Prints the plan in `format`. The exit code: whether it fits. Where there is no plan it says why, and removes the
/// recordings: they would look like one.
int conclude(const PlannedRun& run, const std::string& format, const FindNeed& find_need);

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

// Why the plan does not cover the program; empty if it does.
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
  if (run.files.empty()) return "nothing was recorded, so there is no plan: " + run.no_recording_reason;
  if (plan.devices.empty()) {
    return "the program allocated no memory on a GPU, so there is no plan; does it select a CUDA device?";
  }
  if (run.steps_asked && plan.steps == 0) {
    return "no training step was found: no optimizer of torch.optim made one, and the program marks none "
           "(tidemark_mark(\"step\")); --steps 0 plans the whole program, such as inference";
  }
  return "";
}

int conclude(const PlannedRun& run, const std::string& format, const FindNeed& find_need) {
  const auto recordings = read_planned(run.files, format != "json");
  if (!recordings) return fail(recordings.error().message);
  Plan plan = make_plan(run.facts, *recordings);
  if (const std::string why = why_no_plan(plan, run, *recordings); !why.empty()) {
    std::error_code ignored;
    for (const std::string& file : run.files) std::filesystem::remove(file, ignored);
    return fail(why);
  }
  if (!plan.fits && format != "json") plan.need = find_need(plan);
  const int printed = print(format == "json" ? to_json(plan) : "\n" + to_text(plan, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : plan.fits ? kOk : kCheckFailed;
}

// Beyond PyTorch's reserved memory, for each rank on two H200 connected by NVLink: driver 580, NCCL 2.28.9, 2026-11-22.
constexpr NcclMemory kNcclMemory = {880'803'840, 507'510'784};

AnalysisOption margin_option() {
  return {"margin", AnalysisOption::Kind::share, "SHARE", "With --fit: how much of the memory has to stay free", "5%"};
}

struct PlanOptions {
  ProgramOptions program;
  std::string gpu = "auto";
  std::uint64_t memory_bytes = 0;  // 0: the GPU's own
  std::uint64_t steps = 3;         // 0: the program runs to its end
  std::uint64_t devices = 1;
  std::uint64_t ranks = 1;
  bool starts_ranks = false;  // --nproc was given
  std::string python;
  std::string format = "text";
  std::string fit;  // the argument to maximize
  bool verify = false;
  AnalysisOptions margin{{margin_option()}};
};

Result<InterpreterFacts> find_python(const PlanOptions& options) {
  if (!options.python.empty()) return probe_interpreter(options.python);
  const auto interpreter = interpreter_of(options.program.command.front());
  if (!interpreter) {
    return Error{
        fmt::format("{}: is not started by a Python interpreter that is known; name the one whose PyTorch it uses "
                    "with --python",
                    options.program.command.front())};
  }
  return probe_interpreter(*interpreter);
}

// Adds the processes' activity on the phantom GPU. Returns the path of a library with a separate CUDA runtime.
std::string add_usage(PlanFacts& facts, const PhantomRun& phantom) {
  PhantomUsage usage = phantom.usage();
  facts.reads = usage.reads;
  facts.device_peaks = std::move(usage.device_peaks);
  const auto estimates = [&usage](phantom::Estimate kind) { return usage.estimates[static_cast<std::size_t>(kind)]; };
  facts.cudnn_estimates = estimates(phantom::Estimate::cudnn_workspace);
  facts.cusolver_estimates = estimates(phantom::Estimate::cusolver_workspace);
  facts.cufft_estimates = estimates(phantom::Estimate::cufft_workspace);
  facts.cusparse_estimates = estimates(phantom::Estimate::cusparse_workspace);
  facts.kernel_estimates = estimates(phantom::Estimate::kernel);
  facts.unanswered = std::move(usage.unanswered);
  for (const PhantomProcess& process : usage.processes) {
    PlannedProcess& planned = facts.processes.emplace_back();
    planned.pid = process.pid;
    planned.steps = process.steps;
    planned.steps_by_marks = process.steps_by_marks;
    planned.communicators = process.communicators;
    planned.driver_bytes = process.driver_bytes;
    for (const PhantomLibrary& library : process.libraries) {
      planned.libraries.push_back({library.name, library.device, library.peak_bytes});
    }
    facts.idle_optimizers += process.idle_optimizers;
  }
  return usage.own_runtime;
}

// Ended by Ctrl-C or kill, according to the program's own end or a shell's exit code.
bool was_interrupted(const ChildProcess& child) {
  const int number = child.ending_signal().value_or(child.exit_code().value_or(0) - 128);
  return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

Result<void> check(const PlanOptions& options) {
  for (const auto& [name, count] : {std::pair("--nproc", options.ranks), std::pair("--devices", options.devices)}) {
    if (count < 1 || count > kMaxPlannedDevices)
      return Error{fmt::format("{} {}: from 1 to {}", name, count, kMaxPlannedDevices)};
  }
  return {};
}

Result<GpuProfile> chosen_gpu(const PlanOptions& options) {
  auto gpu = find_gpu_profile(options.gpu);
  const auto is_gpu = [](const std::string& word) { return word.starts_with("--gpu"); };
  if (gpu || options.gpu != "auto" || std::ranges::none_of(options.program.command, is_gpu)) return gpu;
  return Error{
      "--gpu stands behind the program, which gets it; put it before: tidemark plan --gpu H100-80GB -- PROGRAM"};
}

int run_fit(const PlanOptions& options, const CommandLine& app) {
  const auto gpu = chosen_gpu(options);
  if (!gpu) return fail(gpu.error().message);
  if (app.given("--output")) return fail("--fit keeps no recording: plan once more with the value that it finds");
  const std::uint64_t memory = options.memory_bytes != 0 ? options.memory_bytes : gpu->memory_bytes;
  const std::vector<std::string> own = {"--fit", "--margin", "--format", "--gpu", "--memory", "--force"};
  return fit_plan({options.fit, options.margin.share("margin"), *gpu, options.gpu, memory, app.words_given(own),
                   options.program.command, options.format == "json"});
}

int run_verify(const PlanOptions& options, const CommandLine& app) {
  for (const char* name : {"--output", "--memory", "--devices", "--fit"}) {
    if (app.given(name)) return fail(fmt::format("--verify compares with the GPU of this machine: leave out {}", name));
  }
  return verify_plan({app.words_given({"--verify", "--format", "--gpu", "--force"}), options.gpu,
                      options.program.command, options.format == "json"});
}

int run(PlanOptions& options, const CommandLine& app) {
  if (auto status = check(options); !status) return fail(status.error().message);
  const auto gpu = chosen_gpu(options);
  if (!gpu) return fail(gpu.error().message);
  const auto python = find_python(options);
  if (!python) return fail(python.error().message);
  ProgramOptions& program = options.program;
  const std::vector<std::string> command = program.command;
  const std::vector<std::string> words = app.words_given({"--gpu", "--memory", "--format", "--output", "--force"});
  if (options.starts_ranks) {
    auto ranks = ranks_command(program.command, python->executable, options.ranks);
    if (!ranks) return fail(ranks.error().message);
    program.command = std::move(*ranks);
  }
  const std::uint64_t memory = options.memory_bytes != 0 ? options.memory_bytes : gpu->memory_bytes;
  const PhantomOptions planned_gpu = {
      *gpu, memory, static_cast<int>(options.devices), kNcclMemory.first, kNcclMemory.further, options.steps};
  const auto phantom = PhantomRun::create(*python, planned_gpu);
  if (!phantom) return fail(phantom.error().message);

  PlannedJob job(*phantom);
  const OomKills oom_kills;
  PlannedRun planned;
  program.preload = phantom->preload();
  program.environment = phantom->environment();
  program.only_recorded = true;  // otherwise it would run without the phantom GPU, perhaps on a real one
  if (has_nvidia_driver()) {
    program.prepare = refuse_nvidia_driver;
    program.recorder.seccomp_filters = 1;
  }
  program.recorder.samples.open_sources = [folder = phantom->folder(), planned_gpu] {
    std::vector<OpenedSource> sources;
    sources.push_back({"nvidia", make_phantom_source(folder, planned_gpu), "", ""});
    return sources;
  };
  program.watch = [&job, steps_asked = options.steps != 0](const ChildProcess& child) {
    job.watch(child.witness());
    if (job.turned_idle()) {
      say_printable(
          "no GPU memory requested in the last minute: the program works on the host or waits; the plan goes on "
          "(Ctrl-C: plan what it did until now)");
    }
    if (steps_asked && job.stopped_stepping()) {
      say_printable(
          "no training step in the last two minutes; the plan goes on (to plan a program without training steps to its "
          "end: --steps 0)");
    }
  };
  program.ended = [](const ChildProcess& child) { PlannedJob::end_remaining(child.witness()); };
  planned.no_recording_reason = "the recorder could not be started";
  const auto at_end = [&](const Recorder& recorder) {
    for (const RecordedFile& file : recorder.files()) planned.files.push_back(file.path);
    planned.no_recording_reason = recorder.no_recording_reason();
  };
  std::optional<StdoutToStderr> moved;
  if (options.format == "json") moved.emplace();
  return record_program(program, at_end, [&](const ChildProcess& child) {
    moved.reset();
    PlanFacts& facts = planned.facts;
    facts.gpu = gpu->name;
    facts.memory_bytes = memory;
    facts.own_memory_bytes = gpu->memory_bytes;
    facts.memory_measured = options.memory_bytes != 0 || gpu->measured;
    facts.context_bytes = gpu->context_bytes;
    facts.context_measured = gpu->context_measured;
    facts.nccl = kNcclMemory;
    facts.torch_version = python->torch_version;
    facts.stopped = job.is_complete();
    if (!facts.stopped) facts.exit_code = child.exit_code();
    facts.interrupted = !facts.stopped && was_interrupted(child);
    planned.own_runtime = add_usage(facts, *phantom);
    planned.steps_asked = options.steps != 0;
    planned.ending_signal = child.ending_signal();
    planned.oom_kills = oom_kills.count();
    planned.kills_of_own_group = oom_kills.counts_own_group();
    return conclude(planned, options.format, [&](const Plan& plan) -> std::optional<PlanNeed> {
      if (options.steps != 0) return find_need(plan, {{options.gpu, words, command}, memory, options.ranks});
      // A program that runs to its end would write its files once more.
      std::string again = "tidemark plan --gpu " + shell_argument(options.gpu) + " --memory 4TiB";
      for (const std::string& word : words) {  // "--steps=0"
        const std::size_t value = word.find('=');
        again += " " + word.substr(0, value);
        if (value != word.npos) again += "=" + shell_argument(word.substr(value + 1));
      }
      again += " --";
      for (const std::string& word : command) again += " " + shell_argument(word);
      say_printable("it does not fit; to see what it needs: " + again);
      return std::nullopt;
    });
  });
}

std::string gpu_names() {
  std::string names;
  for (const GpuProfile& gpu : gpu_profiles()) names += fmt::format("{}{}", names.empty() ? "" : ", ", gpu.name);
  return names;
}

}  // namespace

std::function<int()> setup_plan(CommandLine& app) {
  auto options = std::make_shared<PlanOptions>();
  ProgramOptions& program = options->program;
  app.add_option("--gpu", options->gpu,
                 "GPU to plan for: auto, the first one of this machine; a file that describes one (tidemark devices "
                 "--profile); or " +
                     gpu_names())
      ->type_name("NAME|FILE");
  app.add_option("--memory", options->memory_bytes,
                 "Memory of each device, such as 24GiB, where it is not that of the GPU")
      ->bytes(kMinPlannedMemory);
  app.add_option("--steps", options->steps,
                 "Training steps after which the program is ended; 0: none, it runs to its end")
      ->type_name("N");
  app.add_option("--devices", options->devices, "GPUs that the program finds")
      ->type_name("N")
      ->show_default("one for each rank of --nproc");
  app.add_option("--nproc", options->ranks, "Ranks to start, by torch.distributed.run")
      ->type_name("N")
      ->show_default("the program is started as it is");
  app.add_option("--python", options->python, "Python interpreter of the program, to find its PyTorch")
      ->type_name("FILE")
      ->show_default("the one that PROGRAM starts");
  app.add_option("-o,--output", program.recorder.output, "Recording of the plan, for all other commands")
      ->type_name("FILE")
      ->show_default("PROGRAM-DATE-TIME.tide");
  app.add_flag("-f,--force", program.recorder.overwrite, "Replace existing recordings that no other run is writing");
  add_format(app, options->format, "text|json");
  app.add_option(
         "--fit", options->fit,
         "Vary this argument of the program, such as batch=--batch-size, and find the largest value that fits; no "
         "recording is kept")
      ->type_name("NAME=OPTION");
  add_option(app, margin_option(), options->margin);
  app.add_flag("--verify", options->verify,
               "Also run the program on the GPU of this machine, as far as the plan goes, and compare");
  app.add_option("PROGRAM", program.command, "Program and its arguments")->required();
  app.ends_with_a_program();
  app.footer(
      "The program runs unchanged, with PyTorch's own allocator, autograd and optimizers, on a GPU that is not there: "
      "kernels do nothing, and device memory takes none of the host. It is ended as soon as it has made --steps "
      "training "
      "steps, which are counted at optimizer.step(), in a program without an optimizer at its own marks: nothing that "
      "it "
      "would do next, such as saving a checkpoint, is run. It needs a build of PyTorch for CUDA, and no GPU or driver; "
      "a "
      "GPU of this machine is not used. What values decide is not known: docs/phantom-gpu.md.\n\n"
      "Exit code 0: it fits, or with --verify, its peaks are within 1% of the real ones; 1: not so; 2: an error.\n\n"
      "Examples:\n"
      "  tidemark plan --gpu A100-40GB -- python train.py --batch 32\n"
      "  tidemark plan --gpu H100-80GB --memory 40GiB --nproc 8 -- python train.py\n"
      "  tidemark plan --gpu L4 --steps 0 -- python generate.py\n"
      "  tidemark plan --gpu L4 --fit batch=--batch-size -- python train.py\n"
      "  tidemark plan --gpu H200 --format json -- python train.py | jq .fits");
  return [options, &app] {
    options->starts_ranks = app.given("--nproc");
    if (!app.given("--devices")) options->devices = options->ranks;
    if (options->verify) return run_verify(*options, app);
    return options->fit.empty() ? run(*options, app) : run_fit(*options, app);
  };
}

}  // namespace tidemark::cli
