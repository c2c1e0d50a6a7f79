#include "report/common/text.h"

#include <fmt/format.h>

#include <cstdlib>

#include "analyze/plan/simulation.h"
#include "base/units.h"
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

std::string end_cell(const SimulatedSettings& run) {
  if (run.out_of_memory_ns) return "at " + format_duration_ns(*run.out_of_memory_ns);
  return run.passed_failures != 0 ? fmt::format("{} fewer", format_count(run.passed_failures)) : "no";
}

std::string device_text(const Simulation& simulation, std::size_t index, const Terminal& terminal) {
  const SimulatedDevice& device = simulation.devices[index];
  Columns columns({"peak reserved", "saved", "peak allocated", "unused at peak", "out of memory", "settings"});
  const auto add = [&](const AllocatorOutcome& outcome, const std::string& saved, const std::string& end,
                       const std::string& settings) {
    columns.add({format_bytes(outcome.peak_reserved), saved, format_bytes(outcome.peak_allocated),
                 unused_cell(outcome.at_peak), end, settings});
  };
  const auto add_run = [&](const SimulatedSettings& run, const std::string& settings) {
    add(run.devices[index], saving_cell(simulation.saving(run, index)), end_cell(run), settings);
  };
  for (const SimulatedSettings& run : simulation.runs) add_run(run, settings_words(run.settings));
  add_run(simulation.check, settings_words(simulation.check.settings) + ", as recorded");
  const std::string failures = simulation.recorded_failures == 0 ? "no" : format_count(simulation.recorded_failures);
  add(device.recorded, "", failures, "the recording itself");
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
  return text + quality_hint(simulation.recording, terminal);
}

}  // namespace tidemark
