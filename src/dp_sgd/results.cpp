#include "dp_sgd/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/timeline/timeline.h"
#include "base/output_file.h"
#include "base/units.h"
#include "import/open.h"
#include "query/results/results.h"
#include "query/words/printable.h"
#include "query/words/sweep.h"
#include "report/chart/picture.h"
#include "report/common/columns.h"
#include "report/common/csv.h"
#include "report/plot/plots.h"
#include "store/symbols.h"
#include "sweep/trials.h"

namespace tidemark {
namespace {

using ReportJson = nlohmann::ordered_json;

constexpr std::string_view kReportBegin = "DP_SGD {";
constexpr std::size_t kLongestReport = 65'536;
constexpr std::size_t kMaxParts = 64;  // phases, kinds, components of one

Error malformed() {
  return Error{"the line DP_SGD of its output is not as dp_sgd.py writes it"};
}

std::optional<std::uint64_t> bytes_in(const ReportJson& object, const char* key) {
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number_unsigned()) return std::nullopt;
  return value->get<std::uint64_t>();
}

bool has_parts(const ReportJson& report, const char* key) {
  return report.contains(key) && report[key].is_object() && report[key].size() <= kMaxParts;
}

bool add_phases(DpSgdReport& report, const ReportJson& phases) {
  for (const auto& [name, phase] : phases.items()) {
    if (!phase.is_object()) return false;
    const auto end = bytes_in(phase, "end_bytes");
    const auto peak = bytes_in(phase, "peak_bytes");
    if (!end || !peak) return false;
    report.phases.push_back({name, *end, *peak});
  }
  return true;
}

bool add_kinds(DpSgdReport& report, const ReportJson& kinds) {
  for (const auto& [kind, components] : kinds.items()) {
    if (!components.is_object() || components.size() > kMaxParts) return false;
    ParameterMemory memory{kind, {}};
    for (const auto& [name, bytes] : components.items()) {
      if (!bytes.is_number_unsigned()) return false;
      memory.components.push_back({name, bytes.get<std::uint64_t>()});
    }
    report.kinds.push_back(std::move(memory));
  }
  return true;
}

std::string version_in(const ReportJson& report, const char* key) {
  const auto value = report.find(key);
  return value != report.end() && value->is_string() ? value->get<std::string>() : "";
}

// "config 1": rows are counted from 1, as files name them.
std::string configuration_name(std::size_t row) {
  return fmt::format("config {}", row + 1);
}

// "seq_length=128 batch_size=8", after the GPU if there are several.
std::string configuration_words(const Sweep& sweep, std::size_t row) {
  const std::string words = configuration_text(sweep, sweep.rows[row]);
  return sweep.gpus.size() == 1 ? words : shown(sweep.gpus[sweep.rows[row].gpu].name) + " " + words;
}

// "per-sample gradients" of "per_sample_gradients".
std::string kind_words(const std::string& kind) {
  if (kind == kPerSampleGradients) return "per-sample gradients";
  std::string words = kind;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

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

// The names of all phases, or kinds, that the reports have.
template <typename Part>
std::vector<std::string> names_of_all(const DpSgdSweep& result, std::vector<Part> DpSgdReport::*parts,
                                      std::string Part::*name) {
  std::vector<std::string> names;
  for (const std::optional<DpSgdReport>& report : result.reports) {
    if (!report) continue;
    for (const Part& part : *report.*parts) {
      if (std::find(names.begin(), names.end(), part.*name) == names.end()) names.push_back(part.*name);
    }
  }
  return names;
}

// "model loading" is the column "model_loading_peak_bytes".
std::string bytes_column(std::string name, const char* what) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return "," + csv_field(name + what);
}

constexpr std::size_t kMaxConfigurations = 12;  // with a separate panel
constexpr std::array kRolesOfNames = {Role::site5, Role::site2, Role::site3, Role::site4,
                                      Role::site7, Role::site6, Role::site8, Role::site1};

// The same colour for a name in all panels; the first ones have the best contrast with text.
class NamedRoles {
 public:
  Role role(const std::string& name) {
    return kRolesOfNames[places_.emplace(name, places_.size()).first->second % kRolesOfNames.size()];
  }

 private:
  std::map<std::string, std::size_t> places_;
};

// Rows with a report, limited to the highest peaks, in their order.
std::vector<std::size_t> largest_rows(const DpSgdSweep& result) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < result.reports.size(); ++row) {
    if (result.reports[row]) rows.push_back(row);
  }
  const auto peak = [&](std::size_t row) {
    const auto& trial = result.sweep.rows[row].result;
    return trial ? trial->peak_allocated_bytes.value_or(0) : 0;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return peak(a) > peak(b); });
  rows.resize(std::min(rows.size(), kMaxConfigurations));
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Pictures of a trial's recordings, one for each rank; nullopt if it has none.
Result<std::optional<std::string>> timeline_picture(const std::string& folder, ChartFormat format) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tide") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Timeline> timelines;
  for (const std::string& path : paths) {
    const auto recording = open_store(path);
    if (!recording) return recording.error();
    Symbols symbols(recording->definitions);
    auto timeline = analyze_timeline(*recording, symbols, {});
    if (!timeline) return timeline.error();
    timelines.push_back(std::move(*timeline));
  }
  if (timelines.empty()) return std::optional<std::string>();
  auto picture = draw_chart(timelines, format);
  if (!picture) return picture.error();
  return std::optional(std::move(*picture));
}

Result<void> write_timelines(const Sweep& sweep, const std::string& folder, const std::string& plot,
                             ChartFormat format) {
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    if (!sweep.rows[row].result || sweep.rows[row].folder.empty()) continue;
    const auto picture = timeline_picture(folder + "/" + sweep.rows[row].folder, format);
    if (!picture) return picture.error();
    if (!*picture) continue;
    const std::string path = fmt::format("{}/memory_timeline_config_{}.{}", folder, row + 1, plot);
    if (auto written = write_file(path, **picture); !written) return written;
  }
  return {};
}

}  // namespace

Result<DpSgdReport> parse_dp_sgd(std::string_view output) {
  const std::size_t begin = output.rfind(kReportBegin);
  if (begin == std::string_view::npos) return Error{"its output has no line DP_SGD"};
  std::string_view line = output.substr(begin + kReportBegin.size() - 1);
  line = line.substr(0, std::min(line.find('\n'), kLongestReport));
  const ReportJson json = ReportJson::parse(line, nullptr, false);
  if (!json.is_object() || !has_parts(json, "phases") || !has_parts(json, "components")) return malformed();
  DpSgdReport report;
  if (!add_phases(report, json["phases"]) || !add_kinds(report, json["components"])) return malformed();
  report.torch_version = version_in(json, "torch");
  report.opacus_version = version_in(json, "opacus");
  return report;
}

// A plan's own output is on stdout, and the program's with its messages on stderr; a recorded program's is on stdout.
Result<DpSgdReport> read_dp_sgd(const std::string& folder) {
  const std::string messages = end_of_file(folder + "/output.log");
  if (messages.find(kReportBegin) != std::string::npos) return parse_dp_sgd(messages);
  return parse_dp_sgd(end_of_file(folder + "/result.json"));
}

DpSgdSweep read_dp_sgd_sweep(const Sweep& sweep, const std::string& model, const std::string& folder) {
  DpSgdSweep result{sweep, model, {}};
  for (const SweepRow& row : sweep.rows) {
    std::optional<DpSgdReport>& report = result.reports.emplace_back();
    if (!row.measured() || row.folder.empty()) continue;
    if (auto found = read_dp_sgd(folder + "/" + row.folder); found) report = std::move(*found);
  }
  return result;
}

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

std::string to_csv(const DpSgdSweep& result) {
  const Sweep& sweep = result.sweep;
  const auto kinds = names_of_all(result, &DpSgdReport::kinds, &ParameterMemory::kind);
  const auto phases = names_of_all(result, &DpSgdReport::phases, &PhaseMemory::name);
  std::string text = "config,gpu";
  for (const VariedArgument& argument : sweep.arguments) text += "," + csv_field(argument.name);
  text += ",fits,peak_allocated_bytes,peak_reserved_bytes,device_used_bytes,per_sample_gradient_share";
  for (const std::string& kind : kinds) text += bytes_column(kind, "_bytes");
  for (const std::string& phase : phases) text += bytes_column(phase, "_peak_bytes");
  text += ",failure\n";
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    const SweepRow& configuration = sweep.rows[row];
    text += fmt::format("{},{}", row + 1, csv_field(sweep.gpus[configuration.gpu].name));
    for (const std::string& value : configuration.values) text += "," + (number_of(value) ? value : csv_field(value));
    const TrialResult trial = configuration.result.value_or(TrialResult());
    text += yes_field(trial.fits);
    for (const auto& bytes : {trial.peak_allocated_bytes, trial.peak_reserved_bytes, trial.device_used_bytes}) {
      text += number_field(bytes);
    }
    const auto share = result.per_sample_share(row);
    text += share ? fmt::format(",{:.6f}", *share) : ",";
    const DpSgdReport report = result.reports[row].value_or(DpSgdReport());
    for (const std::string& kind : kinds) text += number_field(report.bytes_of(kind));
    for (const std::string& name : phases) {
      const PhaseMemory* phase = report.phase(name);
      text += number_field(phase == nullptr ? std::nullopt : std::optional(phase->peak_bytes));
    }
    text += "," + csv_field(trial.failure) + "\n";
  }
  return text;
}

Result<std::string> draw_dp_sgd_components(const DpSgdSweep& result, ChartFormat format) {
  std::vector<std::pair<std::string, std::vector<BarRow>>> kinds;  // in the order of the reports
  NamedRoles roles;
  for (std::size_t row = 0; row < result.reports.size(); ++row) {
    if (!result.reports[row]) continue;
    for (const ParameterMemory& memory : result.reports[row]->kinds) {
      auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& of) { return of.first == memory.kind; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {memory.kind, {}});
      BarRow& bar = kind->second.emplace_back();
      bar.label = configuration_name(row);
      for (const ComponentBytes& component : memory.components) {
        bar.parts.push_back({roles.role(component.name), component.name, component.bytes});
      }
    }
  }
  if (auto checked = check_panel_count(kinds.size()); !checked) return checked.error();
  Picture picture{
      "Memory of the parameters, by component", shown(result.model), {}, "No configuration ran to its end.", ""};
  for (const auto& [kind, bars] : kinds) picture.panels.push_back({shown(kind_words(kind)), bars_plot(bars)});
  return draw_picture(picture, format);
}

Result<std::string> draw_dp_sgd_phases(const DpSgdSweep& result, ChartFormat format) {
  Picture picture{
      "Peak of the allocated memory, by phase", shown(result.model), {}, "No configuration ran to its end.", ""};
  const std::vector<std::size_t> rows = largest_rows(result);
  std::uint64_t highest = 0;
  for (const std::size_t row : rows) {
    for (const PhaseMemory& phase : result.reports[row]->phases) highest = std::max(highest, phase.peak_bytes);
  }
  for (const std::size_t row : rows) {
    std::vector<BarRow> bars;
    for (const PhaseMemory& phase : result.reports[row]->phases) {
      const std::uint64_t kept = std::min(phase.end_bytes, phase.peak_bytes);
      bars.push_back(
          {phase.name,
           {{Role::site5, "allocated at its end", kept}, {Role::site2, "more at its peak", phase.peak_bytes - kept}}});
    }
    picture.panels.push_back(
        {configuration_name(row) + ": " + configuration_words(result.sweep, row), bars_plot(bars, highest)});
  }
  const auto reported = static_cast<std::size_t>(std::count_if(result.reports.begin(), result.reports.end(),
                                                               [](const auto& report) { return report.has_value(); }));
  if (!rows.empty() && reported > rows.size()) {
    picture.panels.back().plot.remark =
        fmt::format("Not drawn: {} configurations with lower peaks.", reported - rows.size());
  }
  return draw_picture(picture, format);
}

Result<void> write_dp_sgd_files(const DpSgdSweep& result, const std::string& folder, const std::string& plot) {
  for (const auto& [name, text] : {std::pair("memory_profile_results.json", to_json(result)),
                                   std::pair("detailed_memory_results.json", to_json(DpSgdComponents{&result})),
                                   std::pair("memory_profile_summary.csv", to_csv(result))}) {
    if (auto written = write_file(folder + "/" + name, text); !written) return written;
  }
  if (plot == "none") return {};
  const ChartFormat format = chart_format(plot);
  const auto write = [&](const char* name, const auto& draw) {
    return write_picture(fmt::format("{}/{}.{}", folder, name, plot), draw(result, format));
  };
  if (auto written = write("detailed_memory_analysis", draw_dp_sgd_components); !written) return written;
  if (auto written = write("operation_level_breakdown", draw_dp_sgd_phases); !written) return written;
  return write_timelines(result.sweep, folder, plot, format);
}

}  // namespace tidemark
