#include "sweep/dp_sgd.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

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

bool is_list(const ReportJson& report, const char* key) {
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

}  // namespace

Result<DpSgdReport> parse_dp_sgd(std::string_view output) {
  const std::size_t begin = output.rfind(kReportBegin);
  if (begin == std::string_view::npos) return Error{"its output has no line DP_SGD"};
  std::string_view line = output.substr(begin + kReportBegin.size() - 1);
  line = line.substr(0, std::min(line.find('\n'), kLongestReport));
  const ReportJson json = ReportJson::parse(line, nullptr, false);
  if (!json.is_object() || !is_list(json, "phases") || !is_list(json, "components")) return malformed();
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

}  // namespace tidemark
