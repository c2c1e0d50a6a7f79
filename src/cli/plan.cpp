// tidemark plan: runs a program on a GPU that is not there, and says how much memory it would take.
#include <fmt/format.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/units.h"
#include "cli/plan_conclusion.h"
#include "cli/plan_fit.h"
#include "cli/plan_verify.h"
#include "cli/reading.h"
#include "cli/record_program.h"
#include "cli/stdout_to_stderr.h"
#include "launch/interpreter_probe.h"
#include "plan/gpu_profiles.h"
#include "plan/oom_kills.h"
#include "plan/phantom_run.h"
#include "plan/phantom_source.h"
#include "plan/planned_job.h"
#include "plan/ranks_command.h"
#include "plan/real_gpus.h"

namespace tidemark::cli {
namespace {

constexpr std::uint64_t kMinMemory = 256 * kMiB;
constexpr std::uint64_t kMaxPlannedDevices = 64;
// Beyond what PyTorch reserved, of each rank on two H200 connected by NVLink: driver 580, NCCL 2.28.9, 2026-11-22.
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
  std::string fit;  // the argument whose largest value is asked for
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

// What the processes did on the phantom GPU. Returns the path of a library that has a CUDA runtime of its own.
std::string add_usage(PlanFacts& facts, const PhantomRun& phantom) {
  PhantomUsage usage = phantom.usage();
  facts.reads = usage.reads;
  facts.device_peaks = std::move(usage.device_peaks);
  const auto estimates = [&usage](phantom::Estimate kind) { return usage.estimates[static_cast<std::size_t>(kind)]; };
  facts.cudnn_estimates = estimates(phantom::Estimate::cudnn_workspace);
  facts.cusolver_estimates = estimates(phantom::Estimate::cusolver_workspace);
  facts.cufft_estimates = estimates(phantom::Estimate::cufft_workspace);
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

// Ended by Ctrl-C or kill, as the program's own end or as a shell's exit code says.
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

int run_fit(const PlanOptions& options, const CommandLine& app) {
  const auto gpu = find_gpu_profile(options.gpu);
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

int run(PlanOptions& options) {
  if (auto status = check(options); !status) return fail(status.error().message);
  const auto gpu = find_gpu_profile(options.gpu);
  if (!gpu) return fail(gpu.error().message);
  const auto python = find_python(options);
  if (!python) return fail(python.error().message);
  ProgramOptions& program = options.program;
  if (options.starts_ranks) {
    auto ranks = ranks_command(program.command, python->executable, options.ranks);
    if (!ranks) return fail(ranks.error().message);
    program.command = std::move(*ranks);
  }
  const std::uint64_t memory = options.memory_bytes != 0 ? options.memory_bytes : gpu->memory_bytes;
  const PhantomOptions planned_gpu = {*gpu, memory, static_cast<int>(options.devices), options.steps};
  const auto phantom = PhantomRun::create(*python, planned_gpu);
  if (!phantom) return fail(phantom.error().message);

  PlannedJob job(*phantom);
  const OomKills oom_kills;
  PlannedRun planned;
  program.preload = phantom->preload();
  program.environment = phantom->environment();
  program.only_recorded = true;  // otherwise it would run without the phantom GPU, perhaps on a real one
  if (has_nvidia_driver()) program.prepare = refuse_nvidia_driver;
  program.recorder.samples.open_sources = [folder = phantom->folder(), planned_gpu] {
    std::vector<OpenedSource> sources;
    sources.push_back({"nvidia", make_phantom_source(folder, planned_gpu), "", ""});
    return sources;
  };
  program.watch = [&job, steps_asked = options.steps != 0](const ChildProcess& child) {
    job.watch(child.witness());
    if (job.became_quiet()) {
      say_printable(
          "the program has not asked for GPU memory for a minute: it waits, or works on the host; Ctrl-C ends "
          "it, and the plan is of what it did until then");
    }
    if (steps_asked && job.makes_no_steps()) {
      say_printable(
          "the program has made no training step for two minutes, though it uses the GPU: --steps 0 plans a program "
          "that makes none to its end; Ctrl-C ends it");
    }
  };
  program.ended = [](const ChildProcess& child) { PlannedJob::end_rest(child.witness()); };
  planned.why_nothing = "the recorder could not be started";
  const auto at_end = [&](const Recorder& recorder) {
    for (const RecordedFile& file : recorder.files()) planned.files.push_back(file.path);
    planned.why_nothing = recorder.why_nothing();
  };
  std::optional<StdoutToStderr> moved;
  if (options.format == "json") moved.emplace();
  return record_program(program, at_end, [&](const ChildProcess& child) {
    moved.reset();
    PlanFacts& facts = planned.facts;
    facts.gpu = gpu->name;
    facts.memory_bytes = memory;
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
    planned.kills_of_own_group = oom_kills.of_own_group();
    return conclude(planned, options.format);
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
      ->bytes(kMinMemory);
  app.add_option("--steps", options->steps,
                 "Training steps after which the program is ended; 0: none, it runs to its end")
      ->type_name("N");
  app.add_option("--devices", options->devices, "GPUs that the program finds")
      ->type_name("N")
      ->show_default("one for each rank of --nproc");
  app.add_option("--nproc", options->ranks, "Ranks to start, by torch.distributed.run")
      ->type_name("N")
      ->show_default("the program is started as it is");
  app.add_option("--python", options->python, "Interpreter whose PyTorch the program uses")
      ->type_name("FILE")
      ->show_default("the one that PROGRAM starts");
  app.add_option("-o,--output", program.recorder.output, "Recording of the plan, for all other commands")
      ->type_name("FILE")
      ->show_default("PROGRAM-DATE-TIME.tide");
  app.add_flag("-f,--force", program.recorder.overwrite, "Replace existing recordings that no other run is writing");
  add_format(app, options->format, "text|json");
  app.add_option("--fit", options->fit,
                 "Vary this argument of the program, such as batch=--batch-size, and find the largest value that fits")
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
    return options->fit.empty() ? run(*options) : run_fit(*options, app);
  };
}

}  // namespace tidemark::cli
