// tidemark restart: whether a job that ran out of memory will do so again, and what to change.
#include "query/restart.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/standard_streams.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/plan_need.h"
#include "cli/reading.h"
#include "plan/gpu_profiles.h"
#include "query/results/results.h"
#include "query/words/recording_text.h"
#include "report/common/terminal.h"
#include "report/common/text.h"
#include "sweep/fitting_changes.h"
#include "sweep/next_attempt.h"

namespace tidemark::cli {
namespace {

struct RestartArguments : ReadingOptions {
  AnalysisOptions chosen{{simulate_option()}};
  std::vector<std::string> apply;
  std::vector<std::string> program;
  bool verify = false;
  std::string gpu = "auto";
  std::uint64_t memory_bytes = 0;
  std::uint64_t ranks = 0;  // 0: the program is started as it is
  bool all = false;
};

// As given, else as the recording has it.
std::vector<std::string> program_of(const RestartArguments& options, const RestartVerdict& verdict) {
  if (!options.program.empty() || !verdict.first) return options.program;
  return command_words(verdict.ranks[*verdict.first].recording);
}

// A smaller batch is one that divides the given one, so that gradients can be accumulated over whole batches.
RestartChange planned_change(const PlannedChange& planned, const std::optional<BatchArgument>& batch) {
  RestartChange change;
  change.kind = RestartChangeKind::planned;
  change.planned = planned.change;
  change.bytes = planned.bytes;
  change.enough = true;
  change.confidence = Confidence::exact;
  change.verified_by = "plan";
  if (!batch || !planned.change.starts_with(batch->name)) return change;
  std::string_view value = std::string_view(planned.change).substr(batch->name.size() + 1);
  value = value.substr(0, value.find_first_not_of("0123456789"));
  const auto size = parse_number<std::uint64_t>(value);
  if (!size || *size == 0 || batch->value % *size != 0) return change;
  change.kind = RestartChangeKind::batch;
  change.divisor = batch->value / *size;
  return change;
}

// Replaces the estimated batch by changes that were planned.
Result<void> verify_changes(const RestartArguments& options, RestartVerdict& verdict) {
  if (!verdict.explanation || verdict.explanation->failures.empty()) return {};
  if (verdict.recurrence.reason == RestartReason::leak) {
    say("--verify: a plan makes a few steps, and a leak takes more: nothing is planned");
    return {};
  }
  const auto gpu = find_gpu_profile(options.gpu);
  if (!gpu) return gpu.error();
  const OomFailure& failure = verdict.explanation->failures.front();
  const std::uint64_t memory =
      options.memory_bytes != 0 ? options.memory_bytes : failure.capacity.value_or(gpu->memory_bytes);
  const std::vector<std::string> program = program_of(options, verdict);
  if (program.empty()) return Error{"--verify: name the program: tidemark restart FILE --verify -- python train.py"};
  NeedRequest request{{options.gpu, {}, program}, memory, std::max<std::uint64_t>(1, options.ranks)};
  if (options.ranks != 0) request.trial.options.push_back(fmt::format("--nproc={}", options.ranks));
  const auto changes = plan_changes(request);
  if (!changes) return changes.error();
  if (changes->empty()) return {};
  std::erase_if(verdict.changes, [](const RestartChange& change) { return change.kind == RestartChangeKind::batch; });
  const std::optional<BatchArgument> batch = find_batch_argument(program);
  for (const PlannedChange& planned : *changes) verdict.changes.push_back(planned_change(planned, batch));
  sort_restart_changes(verdict.changes);
  return {};
}

int run(RestartArguments& options) {
  const auto format = output_format(options);
  if (!format) return fail(format.error().message);
  const auto applied = parse_applied(options.apply);
  if (!applied) return fail(applied.error().message);
  if (const auto chosen = choose_files(options.files); !chosen) return fail(chosen.error().message);
  const bool to_stdout = options.output.empty() || options.output == "-";
  Analysis analysis;
  analysis.options = {simulate_option()};
  const bool to_terminal = to_stdout && *format == "text" && ::isatty(STDOUT_FILENO) != 0;
  choose_simulation(analysis, to_terminal, make_progress, fail, options.chosen);
  auto verdict = judge_restart({options.files, make_progress, options.chosen.simulate});
  if (!verdict) return fail(verdict.error().message);
  if (options.verify) {
    if (const auto verified = verify_changes(options, *verdict); !verified) return fail(verified.error().message);
  }
  if (!applied->empty()) apply_changes(*applied, program_of(options, *verdict), *verdict);
  Terminal terminal = to_stdout ? detect_terminal(STDOUT_FILENO) : Terminal();
  terminal.all = options.all;
  return write_output(options.output, *format == "json" ? to_json(*verdict) : to_text(*verdict, terminal));
}

}  // namespace

std::function<int()> setup_restart(CommandLine& app) {
  auto options = std::make_shared<RestartArguments>();
  app.add_option("FILE", options->files,
                 "Recordings of the job's ranks, or folders of recordings, of which the newest attempt is read. "
                 "Default: the newest recording in this folder")
      ->type_name("FILE|FOLDER");
  options->formats = "text|json";
  add_format(app, options->format, options->formats);
  app.add_option("-o,--output", options->output, "Output file; its extension sets the format where --format does not")
      ->type_name("FILE");
  add_option(app, simulate_option(), options->chosen);
  app.add_flag("--verify", options->verify,
               "Plan the program on a simulated GPU, and with a smaller batch and other changes of its command");
  app.add_option("--gpu", options->gpu, "With --verify: GPU to plan for, as for `tidemark plan`")
      ->type_name("NAME|FILE");
  app.add_option("--memory", options->memory_bytes, "With --verify: memory of each device, such as 24GiB")
      ->bytes(kMinPlannedMemory)
      ->show_default("that of the device in the recording");
  app.add_option("--nproc", options->ranks, "With --verify: ranks to start, by torch.distributed.run")
      ->type_name("N")
      ->show_default("the program is started as it is");
  app.add_option("--apply", options->apply,
                 "Name an argument of the program that may be changed; prints the command of the next attempt. NAME is "
                 "batch, accumulation or checkpointing; can be repeated")
      ->type_name("NAME=OPTION")
      ->one_at_a_time();
  app.add_flag("--all", options->all, "Text: all changes, not only three");
  app.takes_a_program_after_dashes(options->program);
  app.footer(
      "The program for --verify and --apply stands after --; without it, it is the command line in the recording. "
      "Steps are counted from 1, from the start of the process. No command starts the job again: launchers read the "
      "JSON. docs/restart.md has the rules of the verdict, and hooks for torchrun, Slurm and Kubernetes.\n\n"
      "Examples:\n"
      "  tidemark restart train.rank*.tide\n"
      "  tidemark restart recordings/ -o restart.json\n"
      "  tidemark restart recordings/ --apply batch=--batch-size --apply accumulation=--accumulate\n"
      "  tidemark restart run.tide --verify --gpu A100-40GB -- python train.py --batch-size 64");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
