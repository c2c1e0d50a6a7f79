#include "sweep/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "sweep/end_of_file.h"
#include "sweep/recordings.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

// What `tidemark` is called with.
std::vector<std::string> words_of(const TrialRequest& request, const std::string& folder) {
  std::vector<std::string> words = {"tidemark", request.gpu.empty() ? "run" : "plan"};
  if (!request.gpu.empty()) words.insert(words.end(), {"--gpu", request.gpu, "--format", "json"});
  words.insert(words.end(), {"--force", "-o", folder + "/recording.tide"});
  words.insert(words.end(), request.options.begin(), request.options.end());
  words.emplace_back("--");
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

// Why a trial failed: what this program said last, and the last line of the planned one where that says more.
std::string reason_in(const std::string& log, const ProcessEnd& end) {
  constexpr std::string_view kOurs = "tidemark: ";
  std::istringstream lines(end_of_file(log));
  std::string said;
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOurs)) {
      said = line.substr(kOurs.size());
    } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
      last = line;
    }
  }
  if (said.empty()) said = end.exit_code ? fmt::format("exit code {}", *end.exit_code) : "a signal ended it";
  return last.empty() ? said : said + "; its last line: " + last;
}

std::optional<std::uint64_t> highest(const Json& devices, const char* key) {
  std::optional<std::uint64_t> most;
  for (const Json& device : devices) {
    const auto value = device.find(key);
    if (value == device.end() || !value->is_number_unsigned()) return std::nullopt;
    most = std::max(most.value_or(0), value->get<std::uint64_t>());
  }
  return most;
}

// What `tidemark plan` said; nothing where it failed.
TrialResult read_plan(const std::string& folder) {
  TrialResult result;
  const Json plan = Json::parse(end_of_file(folder + "/result.json"), nullptr, false);
  if (!plan.is_object() || !plan.contains("fits") || !plan.contains("devices") || plan["devices"].empty()) {
    return result;
  }
  const Json& devices = plan["devices"];
  result.fits = plan.value("fits", false);
  result.peak_allocated_bytes = highest(devices, "peak_allocated_bytes");
  result.peak_reserved_bytes = highest(devices, "peak_reserved_bytes");
  result.device_used_bytes = highest(devices, "device_used_bytes");
  if (plan.contains("memory_bytes")) result.memory_bytes = plan.value("memory_bytes", std::uint64_t{0});
  result.out_of_memory = highest(devices, "out_of_memory_count").value_or(0) != 0;
  result.uncertain = devices.front().value("uncertain", std::vector<std::string>());
  return result;
}

}  // namespace

Result<BackgroundProcess> start_trial(const TrialRequest& request, const std::string& folder) {
  const auto out = open_output(folder + "/result.json");
  if (!out) return out.error();
  const auto err = open_output(folder + "/output.log");
  if (!err) return err.error();
  return BackgroundProcess::start({.words = words_of(request, folder), .file = "/proc/self/exe"},
                                  {out->get(), err->get()});
}

TrialResult read_trial(const TrialRequest& request, const std::string& folder, const ProcessEnd& end) {
  TrialResult result = request.gpu.empty() ? read_recordings(folder, end) : read_plan(folder);
  result.duration_ns = end.duration_ns;
  result.host_bytes = end.host_bytes;
  if (!result.fits && result.failure.empty()) result.failure = reason_in(folder + "/output.log", end);
  return result;
}

Result<std::optional<TrialResult>> run_trial(const TrialRequest& request, const std::string& folder,
                                             StopSignals& signals) {
  auto trial = start_trial(request, folder);
  if (!trial) return trial.error();
  while (!signals.stopped()) {
    if (const auto end = trial->ended()) return std::optional(read_trial(request, folder, *end));
    signals.wait(std::chrono::milliseconds(500));
  }
  return std::optional<TrialResult>();
}

}  // namespace tidemark
