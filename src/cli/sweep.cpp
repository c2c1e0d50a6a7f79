// tidemark sweep: a program with every combination of some arguments, and predictions for the rest.
#include "analyze/sweep/sweep.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/plan/plan.h"
#include "base/output_file.h"
#include "base/result.h"
#include "base/standard_streams.h"
#include "base/units.h"
#include "cli/dp_sgd.h"
#include "cli/reading.h"
#include "cli/record_program.h"
#include "launch/interpreter_probe.h"
#include "plan/gpu_profiles.h"
#include "plan/planned_job.h"
#include "query/results/results.h"
#include "query/words/sweep.h"
#include "report/chart/chart.h"
#include "report/common/csv.h"
#include "report/common/text.h"
#include "sweep/arguments.h"
#include "sweep/run_sweep.h"

namespace tidemark::cli {

namespace {

struct SweepOptions {
  std::vector<std::string> varied;
  std::string gpus = "auto";
  std::string on = "phantom";
  std::string folder;
  std::uint64_t jobs = 0;
  std::uint64_t budget = 0;
  bool retry = false;
  std::string plot = "png";
  std::string format = "text";
  std::vector<std::string> passed_on;  // to each plan, as words
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> command;
};

/// The program of the sweep: PROGRAM on the command line, or a preset's.
struct SweptProgram : PresetProgram {
  std::vector<std::string> passed_on;  // to each plan
};

Result<SweptProgram> own_program(const SweepOptions& options) {
  if (options.command.empty()) return Error{"name the PROGRAM, or one that comes with Tidemark by --preset"};
  if (options.varied.empty()) return Error{"name an argument of the program and its values with --vary"};
  SweptProgram program;
  program.command = options.command;
  program.passed_on = options.passed_on;
  for (const std::string& text : options.varied) {
    auto argument = parse_varied(text);
    if (!argument) return Error{"--vary " + argument.error().message};
    program.arguments.push_back(std::move(*argument));
  }
  return program;
}

// Takes out an option that would be passed on; the value that was given last.
std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name) {
  std::optional<std::string> value;
  std::erase_if(words, [&](const std::string& word) {
    const bool same = word.starts_with(name + "=");
    if (same) value = word.substr(name.size() + 1);
    return same;
  });
  return value;
}

// Each trial runs to the program's own end.
Result<SweptProgram> preset_program(const SweepOptions& options, const DpSgdPreset& chosen) {
  if (!options.command.empty()) return Error{options.command.front() + ": no PROGRAM is given with --preset"};
  if (!options.varied.empty()) return Error{"--vary: not with --preset, which has options of its own"};
  SweptProgram program;
  program.passed_on = options.passed_on;
  if (take_option(program.passed_on, "--steps"))
    return Error{"--steps: not with --preset, whose trials run to their end"};
  PresetCall call{"", std::nullopt, options.folder};
  const std::string python = take_option(program.passed_on, "--python").value_or("python3");
  const auto interpreter = interpreter_of(python);
  if (!interpreter) return Error{fmt::format("{}: no Python interpreter; name one with --python", python)};
  call.python = *interpreter;
  if (const auto ranks = take_option(program.passed_on, "--nproc")) {
    const auto number = number_of(*ranks);
    if (!number || *number < 1 || *number > kMaxPlannedDevices)
      return Error{fmt::format("--nproc {}: from 1 to {}", *ranks, kMaxPlannedDevices)};
    call.ranks = static_cast<std::uint64_t>(*number);
  }
  auto preset = chosen.program(call);
  if (!preset) return preset.error();
  static_cast<PresetProgram&>(program) = std::move(*preset);
  if (call.ranks) {
    auto ranks = ranks_command(program.command, call.python, *call.ranks);
    if (!ranks) return ranks.error();
    program.command = std::move(*ranks);
  }
  if (options.on == "real") return program;
  program.passed_on.emplace_back("--steps=0");
  if (call.ranks) program.passed_on.push_back(fmt::format("--devices={}", *call.ranks));
  return program;
}

// `preset`: null for PROGRAM.
Result<SweptProgram> swept_program(const SweepOptions& options, const DpSgdPreset* preset) {
  return preset != nullptr ? preset_program(options, *preset) : own_program(options);
}

constexpr std::uint64_t kMaxJobs = 1024;

Result<std::vector<SweptGpu>> swept_gpus(const SweepOptions& options) {
  std::vector<SweptGpu> gpus;
  if (options.on == "real") return std::vector<SweptGpu>{{"real GPU", "", std::nullopt, std::nullopt}};
  const auto names = parse_list(options.gpus);
  if (!names) return Error{"--gpu: " + names.error().message};
  for (const std::string& name : *names) {
    const auto gpu = find_gpu_profile(name);
    if (!gpu) return gpu.error();
    const std::uint64_t memory = options.memory_bytes != 0 ? options.memory_bytes : gpu->memory_bytes;
    gpus.push_back({std::string(gpu->name), name, memory, gpu->context_bytes});
  }
  return gpus;
}

// One line on a terminal, which the next one replaces; each ended trial adds a permanent line.
void show_progress(const Sweep& sweep, const SweepProgress& now, bool terminal) {
  if (terminal) write_stderr({"\r\x1b[K"});
  if (now.finished != nullptr) {
    say_printable(fmt::format("{} on {}: {} ({} of {})", configuration_text(sweep, *now.finished),
                              sweep.gpus[now.finished->gpu].name, outcome_text(*now.finished->result), now.done,
                              now.total));
  }
  if (!terminal) return;
  std::string line = fmt::format("{} of {} trials, {} running", now.done, now.total, now.running);
  if (now.left_ns != 0) line += fmt::format(", about {:.0f} s left", static_cast<double>(now.left_ns) / 1e9);
  write_stderr({line});
}

Result<void> write_outputs(const std::string& folder, const Sweep& sweep, const std::string& plot,
                           const DpSgdPreset* preset) {
  if (auto written = write_file(folder + "/sweep.json", to_json(sweep)); !written) return written;
  if (auto written = write_file(folder + "/sweep.csv", to_csv(sweep)); !written) return written;
  if (plot == "none") return {};
  const auto write = [&](const char* name, const auto& draw) {
    return write_picture(fmt::format("{}/{}.{}", folder, name, plot), draw(sweep, chart_format(plot)));
  };
  auto written = write(preset != nullptr ? DpSgdPreset::kCurves : "curves", draw_sweep_curves);
  return written ? write(preset != nullptr ? DpSgdPreset::kFits : "fits", draw_sweep_fits) : written;
}

Result<SweepRequest> request_of(const SweepOptions& options, const DpSgdPreset* preset) {
  if (options.jobs > kMaxJobs) return Error{fmt::format("--jobs {}: from 1 to {}, or 0", options.jobs, kMaxJobs)};
  if (options.folder.empty()) return Error{"name a folder for the results with -o"};
  auto gpus = swept_gpus(options);
  if (!gpus) return gpus.error();
  auto swept = swept_program(options, preset);
  if (!swept) return swept.error();
  if (options.on == "real" && !swept->passed_on.empty()) {
    return Error{fmt::format("{}: only for plans, not with --on real", swept->passed_on.front())};
  }
  auto program = VariedProgram::create(std::move(swept->command), std::move(swept->arguments));
  if (!program) return program.error();
  if (options.memory_bytes != 0) swept->passed_on.push_back(fmt::format("--memory={}", options.memory_bytes));
  return SweepRequest{
      std::move(*program),     std::move(*gpus),       options.on == "real", std::move(swept->passed_on),
      options.folder,          options.jobs,           options.budget,       options.retry,
      std::move(swept->keeps), std::move(swept->check)};
}

int run(SweepOptions& options, const DpSgdPreset& dp_sgd) {
  const auto chosen = dp_sgd.chosen();
  if (!chosen) return fail(chosen.error().message);
  const DpSgdPreset* preset = *chosen ? &dp_sgd : nullptr;
  if (preset != nullptr && options.folder.empty()) options.folder = DpSgdPreset::kFolder;
  const auto request = request_of(options, preset);
  if (!request) return fail(request.error().message);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto outcome = run_sweep(*request, [terminal](const Sweep& sweep, const SweepProgress& now) {
    if (terminal || now.finished != nullptr) show_progress(sweep, now, terminal);
  });
  if (terminal) write_stderr({"\r\x1b[K"});
  if (!outcome) return fail(outcome.error().message);
  const Sweep& sweep = outcome->sweep;
  if (const auto written = write_outputs(options.folder, sweep, options.plot, preset); !written) {
    return fail(written.error().message);
  }
  Result<std::string> below = std::string();
  if (preset != nullptr) below = preset->write(sweep, options.folder, options.plot);
  if (!below) return fail(below.error().message);
  if (outcome->stopped_by != 0) {
    say_printable("stopped; the trials that ended are kept, and the same command runs the others");
    return 128 + outcome->stopped_by;
  }
  const int printed =
      print(options.format == "json" ? to_json(sweep) : to_text(sweep, detect_terminal(STDOUT_FILENO)) + *below);
  if (printed != kOk) return printed;
  for (const SweepRow& row : sweep.rows) {
    if (row.result && !row.result->fits) return kCheckFailed;
  }
  return kOk;
}

void add_plan_option(CommandLine& app, SweepOptions& options, const std::string& name, const std::string& value,
                     const std::string& help) {
  app.add_option(
         name, [&options, name](const std::string& given) { options.passed_on.push_back(name + "=" + given); }, help)
      ->type_name(value);
}

}  // namespace

std::function<int()> setup_sweep(CommandLine& app) {
  auto options = std::make_shared<SweepOptions>();
  app.add_option(
         "--vary", options->varied,
         "An argument of the program and its values: a list (seq=128,512), a range in powers of two (seq=1..64) "
         "or in steps (seq=8..64:8); batch=--batch-size=1,2 where the option has another name")
      ->one_at_a_time()
      ->type_name("NAME=VALUES");
  app.add_option("--gpu", options->gpus, "GPUs to plan for, separated by commas, as in `tidemark plan`")
      ->type_name("NAMES");
  app.add_option("--on", options->on, "Plan on phantom GPUs, or record on the GPU of this machine")
      ->one_of("phantom|real");
  app.add_option("-o,--output", options->folder, "Folder for the results; trials that it has are not run again")
      ->type_name("FOLDER");
  app.add_option("--jobs", options->jobs, "Trials at a time; 0: as cores and host memory allow, one on a real GPU")
      ->type_name("N");
  app.add_option("--budget", options->budget,
                 "Run only the N most informative trials and predict the others; 0: run all")
      ->type_name("N");
  app.add_flag("--retry", options->retry, "Run trials again that failed");
  app.add_option("--memory", options->memory_bytes, "Memory of each device, as in `tidemark plan`")->bytes(1);
  add_plan_option(app, *options, "--steps", "N", "Training steps of each trial, as in `tidemark plan`");
  add_plan_option(app, *options, "--nproc", "N", "Ranks to start, as in `tidemark plan`");
  add_plan_option(app, *options, "--devices", "N", "GPUs that the program finds, as in `tidemark plan`");
  add_plan_option(app, *options, "--python", "FILE", "Python interpreter of the program, to find its PyTorch");
  app.add_option("--plot", options->plot, "Format of the pictures")->one_of("png|svg|none");
  add_format(app, options->format, "text|json");
  app.add_option("PROGRAM", options->command, "Program and its arguments");
  auto dp_sgd = std::make_shared<DpSgdPreset>(app, options->folder);
  app.ends_with_a_program();
  app.footer(
      "Each combination of values is a trial: a plan of its own, in a process of its own. Where the program's "
      "arguments "
      "have the placeholder {NAME}, a value replaces it; otherwise it is that of the option --NAME, which is added "
      "where "
      "it is not there. The folder gets sweep.json, sweep.csv, pictures (curves, and what fits on which GPU), and the "
      "recordings and messages of each trial. Ctrl-C keeps what is done; the same command goes on. A law, such as "
      "bytes = "
      "a + b * batch * seq, is fitted to the peaks and predicts what was not run.\n\n"
      "Exit code 0: all trials that ran have a result; 1: some failed; 2: an error.\n\n"
      "Examples:\n"
      "  tidemark sweep -o sweep --gpu A100-40GB,H100-80GB --vary seq=512,2048 --vary batch=1..64 -- python train.py\n"
      "  tidemark sweep -o sweep --gpu L4 --budget 10 --vary batch=--batch-size=8..512:8 -- python train.py\n"
      "  tidemark sweep -o sweep --on real --vary rank=8,64 -- python train.py --shape {rank}x{rank}\n"
      "  tidemark sweep --preset dp-sgd --gpu H200 --config config.json --batch_sizes 8 16 --clipping hooks ghost");
  return [options, dp_sgd] { return run(*options, *dp_sgd); };
}

}  // namespace tidemark::cli
