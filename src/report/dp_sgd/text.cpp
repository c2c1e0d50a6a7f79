#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/sweep/dp_sgd.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/dp_sgd/words.h"

namespace tidemark {
namespace {

std::string gb_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{:.3f}", static_cast<double>(*bytes) / static_cast<double>(kGiB)) : "n/a";
}

// Names of components, in the order of the report.
std::vector<std::string> components_of(const DpSgdReport& report) {
  std::vector<std::string> names;
  for (const ParameterMemory& memory : report.kinds) {
    for (const ComponentBytes& component : memory.components) {
      if (std::find(names.begin(), names.end(), component.name) == names.end()) names.push_back(component.name);
    }
  }
  return names;
}

std::uint64_t component_bytes(const ParameterMemory& memory, const std::string& name) {
  for (const ComponentBytes& component : memory.components) {
    if (component.name == name) return component.bytes;
  }
  return 0;
}

std::string component_table(const DpSgdReport& report, const Terminal& terminal) {
  std::vector<std::string> headings = {"component"};
  for (const ParameterMemory& memory : report.kinds) headings.push_back(shown(kind_words(memory.kind)));
  headings.emplace_back("");
  Columns columns(headings);
  const auto add = [&](const std::string& name, const auto& bytes_in) {
    std::vector<std::string> cells = {name};
    for (const ParameterMemory& memory : report.kinds) cells.push_back(gb_text(bytes_in(memory)));
    cells.emplace_back("");
    columns.add(cells);
  };
  for (const std::string& name : components_of(report)) {
    add(shown(name), [&name](const ParameterMemory& memory) { return component_bytes(memory, name); });
  }
  add("all", [](const ParameterMemory& memory) { return memory.bytes(); });
  return columns.text(terminal, 2);
}

std::string share_table(const DpSgdSweep& result, const Terminal& terminal) {
  const Sweep& sweep = result.sweep;
  std::vector<std::string> headings = {"config"};
  if (sweep.gpus.size() > 1) headings.emplace_back("GPU");
  for (const VariedArgument& argument : sweep.arguments) headings.push_back(argument.name);
  headings.insert(headings.end(), {"peak allocated", "per-sample gradients", "share", ""});
  Columns columns(headings);
  for (std::size_t row = 0; row < result.reports.size(); ++row) {
    if (!result.reports[row]) continue;
    std::vector<std::string> cells = {fmt::format("{}", row + 1)};
    if (sweep.gpus.size() > 1) cells.push_back(shown(sweep.gpus[sweep.rows[row].gpu].name));
    for (const std::string& value : sweep.rows[row].values) cells.push_back(shown(value, 40));
    const auto share = result.per_sample_share(row);
    cells.insert(cells.end(), {gb_text(sweep.rows[row].result->peak_allocated_bytes),
                               gb_text(result.reports[row]->bytes_of(kPerSampleGradients)),
                               share ? fmt::format("{:.1f}%", *share * 100) : "n/a", ""});
    columns.add(cells);
  }
  return columns.text(terminal, 2);
}

}  // namespace

std::string to_text(const DpSgdSweep& result, const Terminal& terminal) {
  const auto largest = result.largest();
  if (!largest) return {};
  std::string text = "\n" + paint(terminal, Tone::heading, "Component breakdown:") + "\n";
  text += fmt::format("  GB of 2^30 bytes, in {}, which takes the most ({})\n\n", configuration_name(*largest),
                      configuration_words(result.sweep, *largest));
  text += component_table(*result.reports[*largest], terminal);
  text += "\n" + paint(terminal, Tone::heading, "Per-sample gradients, as a share of the peak (GB)") + "\n";
  return text + share_table(result, terminal);
}

}  // namespace tidemark
