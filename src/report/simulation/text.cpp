#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "analyze/plan/simulation.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/simulation.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

// Reserved and not allocated, at the recorded peak of allocated memory.
std::string unused_cell(const AllocatorState& state) {
  if (!state.reserved || !state.allocated || *state.reserved < *state.allocated) return "n/a";
  return format_bytes(*state.reserved - *state.allocated);
}

std::string saving_cell(const std::optional<std::int64_t>& saving) {
  if (!saving) return "n/a";
  if (*saving == 0) return "0";
  return (*saving < 0 ? "-" : "") + format_bytes(static_cast<std::uint64_t>(std::abs(*saving)));
}

// How many of the recorded out-of-memory errors a replay has, or where it ends with one of its own.
std::string errors_cell(const Simulation& simulation, const SimulatedSettings& run) {
  if (run.out_of_memory_ns) return "fails at " + format_duration_ns(*run.out_of_memory_ns);
  return format_count(simulation.recorded_failures - std::min(simulation.recorded_failures, run.passed_failures));
}

bool has_errors(const Simulation& simulation) {
  return std::ranges::any_of(simulation.runs,
                             [](const SimulatedSettings& run) { return run.out_of_memory_ns.has_value(); });
}

// The columns that every simulation has come last; the settings are what a reader copies.
Columns make_columns(bool errors, bool all) {
  std::vector<std::string> titles = {"peak reserved", "saved"};
  if (all) titles.insert(titles.end(), {"peak allocated", "unused at peak"});
  if (errors) titles.emplace_back("OOM errors");
  titles.emplace_back("settings");
  return Columns(titles);
}

std::string device_text(const Simulation& simulation, std::size_t index, const Terminal& terminal) {
  const SimulatedDevice& device = simulation.devices[index];
  const bool errors = simulation.recorded_failures != 0 || has_errors(simulation);
  Columns columns = make_columns(errors, terminal.all);
  const auto add = [&](const AllocatorOutcome& outcome, const std::string& saved, const std::string& found,
                       const std::string& settings) {
    std::vector<std::string> cells = {format_bytes(outcome.peak_reserved), saved};
    if (terminal.all) {
      cells.insert(cells.end(), {format_bytes(outcome.peak_allocated), unused_cell(outcome.at_peak)});
    }
    if (errors) cells.push_back(found);
    cells.push_back(settings);
    columns.add(std::move(cells));
  };
  const auto add_run = [&](const SimulatedSettings& run, const std::string& settings) {
    add(run.devices[index], saving_cell(simulation.saving(run, index)), errors_cell(simulation, run), settings);
  };
  for (const SimulatedSettings& run : simulation.runs) add_run(run, settings_words(run.settings));
  add_run(simulation.check, settings_words(simulation.check.settings) + ", as recorded");
  add(device.recorded, "", format_count(simulation.recorded_failures), "the recording itself");
  return "\n" + paint(terminal, Tone::heading, to_string(device.device)) + "\n" + columns.text(terminal, 2);
}

}  // namespace

std::string to_text(const Simulation& simulation, const Terminal& terminal) {
  std::string text;
  const std::string best = best_settings_text(simulation);
  if (!best.empty()) text += paint(terminal, Tone::heading, best) + "\n";
  for (std::size_t index = 0; index < simulation.devices.size(); ++index) {
    text += device_text(simulation, index, terminal);
  }
  text += "\n";
  for (const std::string& sentence : simulation_sentences(simulation)) text += sentence + "\n";
  text += quality_hint(simulation.recording, terminal);
  if (!best_helps(simulation)) return text;
  const std::string& settings = simulation.runs.front().settings;
  const std::string command = settings.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF"
                                               : "export PYTORCH_CUDA_ALLOC_CONF=" + shell_word(printable(settings));
  return text + fmt::format("{} {}  {}\n", paint(terminal, Tone::heading, "Next:"), command,
                            paint(terminal, Tone::quiet, "# before the program starts"));
}

}  // namespace tidemark
