#include "cli/plan_fit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "analyze/sweep/fit.h"
#include "base/scratch_folder.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/record_program.h"
#include "query/results/results.h"
#include "query/words/sweep.h"
#include "report/common/text.h"
#include "sweep/arguments.h"
#include "sweep/trials.h"

namespace tidemark::cli {
namespace {

void say_trial(const Fit& fit, const FitTrial& trial) {
  if (::isatty(STDERR_FILENO) != 0)
    say_printable(fmt::format("{} {}: {}", fit.name, trial.value, outcome_text(trial.result)));
}

}  // namespace

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
    static_cast<void>(signals.take());  // said below
  }
  if (!problem.empty()) return fail(problem);
  if (fit.stopped) return fail("stopped before the answer was known");
  const TrialResult& first = fit.trials.front().result;
  if (!first.fits) return fail(fmt::format("{} {}: {}", fit.name, fit.trials.front().value, first.failure));
  const int printed = print(request.json ? to_json(fit) : to_text(fit, detect_terminal(STDOUT_FILENO)));
  return printed != kOk ? printed : fit.largest() ? kOk : kCheckFailed;
}

}  // namespace tidemark::cli
