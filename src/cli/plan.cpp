// tidemark plan: runs a program on a GPU that is not there, and says how much memory it would take.
#include "analyze/plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/scoped_fd.h"
#include "base/units.h"
#include "cli/plan_fit.h"
#include "cli/planned_gpu.h"
#include "cli/reading.h"
#include "cli/record_program.h"
#include "import/open.h"
#include "launch/interpreter_probe.h"
#include "plan/gpu_profiles.h"
#include "plan/phantom_run.h"
#include "report/json/json.h"
#include "report/text/text.h"

namespace tidemark::cli {
namespace {

constexpr std::uint64_t kLeastMemory = 256 * kMiB;
constexpr std::uint64_t kMostDevices = 64;

AnalysisOption margin_option() {
  return {"margin", AnalysisOption::Kind::share, "SHARE", "With --fit: how much of the memory has to stay free", "5%"};
}

struct PlanOptions {
  ProgramOptions program;
  std::string gpu = "auto";
  std::uint64_t memory_bytes = 0;  // 0: the GPU's own
  std::uint64_t devices = 1;
  std::string python;
  std::string format = "text";
  std::string fit;  // the argument whose largest value is asked for
  AnalysisOptions margin{{margin_option()}};
};

// Sends what the program writes to stdout to stderr while it exists: stdout is the plan's.
class StdoutToStderr {
 public:
  StdoutToStderr() : kept_(::dup(STDOUT_FILENO)) { ::dup2(STDERR_FILENO, STDOUT_FILENO); }
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr() { ::dup2(kept_.get(), STDOUT_FILENO); }

 private:
  ScopedFd kept_;
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

Result<Plan> make_plan(PlanFacts facts, const std::vector<std::string>& files) {
  Plan plan;
  plan.facts = std::move(facts);
  const auto load = [](const std::string& path, const Progress& progress) { return open_overview(path, progress); };
  const auto read = read_files(files, load, [&plan](const Overview& overview, Symbols& symbols) -> Result<void> {
    const auto summary = analyze_summary(overview, symbols, {});
    if (!summary) return summary.error();
    add_to_plan(plan, *summary);
    return {};
  });
  if (!read) return read.error();
  return plan;
}

// What can be said of a program that has ended. A program that failed otherwise than for memory has no plan.
int conclude(const PlanOptions& options, PlanFacts facts, const std::vector<std::string>& files,
             const std::string& why_nothing) {
  const auto exit_code = facts.exit_code;
  if (files.empty()) return fail("nothing was recorded, so there is no plan: " + why_nothing);
  const auto plan = make_plan(std::move(facts), files);
  if (!plan) return fail(plan.error().message);
  if (plan->devices.empty()) {
    return fail("the program allocated no memory on a GPU, so there is no plan; does it select a CUDA device?");
  }
  if (plan->fits && exit_code != 0) {
    return fail(exit_code ? fmt::format("the program failed with exit code {} before the plan was complete", *exit_code)
                          : "a signal ended the program before the plan was complete");
  }
  const int printed =
      print(options.format == "json" ? to_json(*plan) : "\n" + to_text(*plan, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : plan->fits ? kOk : kCheckFailed;
}

int run_fit(const PlanOptions& options, const CommandLine& app) {
  const auto gpu = choose_gpu(options.gpu);
  if (!gpu) return fail(gpu.error().message);
  if (app.given("--output")) return fail("--fit keeps no recording: plan once more with the value that it finds");
  const std::uint64_t memory = options.memory_bytes != 0 ? options.memory_bytes : gpu->memory_bytes;
  const std::vector<std::string> own = {"--fit", "--margin", "--format", "--gpu", "--memory", "--force"};
  return fit_plan({options.fit, options.margin.share("margin"), *gpu, memory, app.words_given(own),
                   options.program.command, options.format == "json"});
}

int run(PlanOptions& options) {
  if (options.devices < 1 || options.devices > kMostDevices) {
    return fail(fmt::format("--devices {}: from 1 to {}", options.devices, kMostDevices));
  }
  const auto gpu = choose_gpu(options.gpu);
  if (!gpu) return fail(gpu.error().message);
  const auto python = find_python(options);
  if (!python) return fail(python.error().message);
  const std::uint64_t memory = options.memory_bytes != 0 ? options.memory_bytes : gpu->memory_bytes;
  const auto phantom = PhantomRun::create(*python, {*gpu, memory, static_cast<int>(options.devices)});
  if (!phantom) return fail(phantom.error().message);

  ProgramOptions& program = options.program;
  program.preload = phantom->preload();
  program.environment = phantom->environment();
  program.only_recorded = true;              // otherwise it would run without the phantom GPU, perhaps on a real one
  program.recorder.samples.enabled = false;  // of GPUs of this machine, which the program does not use
  std::vector<std::string> files;
  std::string why_nothing = "the recorder could not be started";
  const auto at_end = [&](const Recorder& recorder) {
    for (const RecordedFile& file : recorder.files()) files.push_back(file.path);
    why_nothing = recorder.why_nothing();
  };
  std::optional<StdoutToStderr> moved;
  if (options.format == "json") moved.emplace();
  return record_program(program, at_end, [&](const ChildProcess& child) {
    moved.reset();
    PlanFacts facts;
    facts.gpu = gpu->name;
    facts.memory_bytes = memory;
    facts.memory_measured = options.memory_bytes != 0 || gpu->measured;
    facts.context_bytes = gpu->context_bytes;
    facts.torch_version = python->torch_version;
    facts.exit_code = child.exit_code();
    PhantomUsage usage = phantom->usage();
    facts.reads = usage.reads;
    facts.estimates = usage.estimates;
    facts.unanswered = std::move(usage.unanswered);
    return conclude(options, std::move(facts), files, why_nothing);
  });
}

}  // namespace

std::function<int()> setup_plan(CommandLine& app) {
  auto options = std::make_shared<PlanOptions>();
  ProgramOptions& program = options->program;
  app.add_option("--gpu", options->gpu, "GPU to plan for: auto, the first one of this machine, or " + gpu_names())
      ->type_name("NAME");
  app.add_option("--memory", options->memory_bytes,
                 "Memory of each device, such as 24GiB, where it is not that of the GPU")
      ->bytes(kLeastMemory)
      ->type_name("SIZE");
  app.add_option("--devices", options->devices, "GPUs that the program finds")->type_name("N");
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
  app.add_option("PROGRAM", program.command, "Program and its arguments")->required();
  app.ends_with_a_program();
  app.footer(
      "The program runs unchanged to its end, with PyTorch's own allocator, autograd and optimizers, on a GPU that is "
      "not "
      "there: kernels do nothing, and device memory takes none of the host. Give it few steps. It needs a build of "
      "PyTorch "
      "for CUDA, and no GPU or driver; a GPU of this machine is not used. What values decide, such as early stopping, "
      "is "
      "not known: docs/phantom-gpu.md.\n\n"
      "Exit code 0: it fits; 1: it does not; 2: an error.\n\n"
      "Examples:\n"
      "  tidemark plan --gpu A100-40GB -- python train.py --batch 32 --steps 3\n"
      "  tidemark plan --gpu H100-80GB --memory 40GiB -- python train.py --steps 3\n"
      "  tidemark plan --gpu L4 --fit batch=--batch-size -- python train.py --steps 3\n"
      "  tidemark plan --gpu H200 --format json -- python train.py --steps 3 | jq .fits");
  return [options, &app] { return options->fit.empty() ? run(*options) : run_fit(*options, app); };
}

}  // namespace tidemark::cli
