#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/sweep/fit.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/sweep.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string answer_text(const Fit& fit, const std::optional<std::uint64_t>& largest) {
  const std::string where = fmt::format("{} of {} with a margin of {}", format_bytes(fit.memory_bytes), fit.gpu,
                                        share_text(fit.margin_share));
  const std::string option = printable(fit.option.empty() ? fit.name : fit.option);
  if (largest && fit.all_alike()) {
    return fmt::format("{} has no effect on the program's memory: {} and {} need the same; is it one of its options?",
                       option, fit.trials[0].value, fit.trials[1].value);
  }
  if (!largest) {
    std::string text = fmt::format("no {} fits into the {}: not even {}", fit.name, where, fit.range.low);
    if (fit.all_alike()) {
      text += fmt::format("\n{} and {} fail with the same memory: the program ignores {}, or fails before it uses it",
                          fit.trials[0].value, fit.trials[1].value, option);
    }
    return text;
  }
  const char* const end = *largest == fit.range.high ? ", the largest that was asked for," : "";
  return fmt::format("{} {}{} fits into the {}", fit.name, *largest, end, where);
}

}  // namespace

std::string to_text(const Fit& fit, const Terminal& terminal) {
  const std::optional<std::uint64_t> largest = fit.largest();
  std::string text = paint(terminal, largest ? Tone::heading : Tone::error, answer_text(fit, largest)) + "\n\n";
  Columns columns({fit.name, "fits", "peak allocated", "peak reserved", "device used", "time", ""});
  std::vector<FitTrial> trials = fit.trials;
  std::sort(trials.begin(), trials.end(), [](const FitTrial& a, const FitTrial& b) { return a.value < b.value; });
  for (const FitTrial& trial : trials) {
    const TrialResult& result = trial.result;
    const std::string mark = result.fits ? (largest == trial.value ? "largest that fits" : "") : shown(result.failure);
    columns.add({std::to_string(trial.value), fits_text(result), trial_bytes_text(result, result.peak_allocated_bytes),
                 trial_bytes_text(result, result.peak_reserved_bytes),
                 trial_bytes_text(result, result.device_used_bytes),
                 fmt::format("{:.1f} s", static_cast<double>(result.duration_ns) / 1e9), mark});
  }
  text += columns.text(terminal, 2);
  std::vector<std::string> uncertain;
  for (const FitTrial& trial : fit.trials) {
    if (largest ? trial.value == *largest : trial.value == fit.range.low) uncertain = trial.result.uncertain;
  }
  if (!fit.monotone()) {
    uncertain.insert(uncertain.begin(), fmt::format("The peak does not grow with every {}: values that were not tried "
                                                    "may take more, or less.",
                                                    fit.name));
  }
  if (!uncertain.empty()) text += "\n" + paint(terminal, Tone::heading, "Uncertainty") + "\n";
  for (const std::string& sentence : uncertain) text += "  " + printable(sentence) + "\n";
  if (fit.command.empty()) return text;
  std::string command = "tidemark run --";
  for (const std::string& word : fit.command) command += " " + shell_argument(word);
  return text + next_command(command, "records a real run with this value", terminal);
}

}  // namespace tidemark
