#include "sweep/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "analyze/attribution/attribution.h"
#include "analyze/ledger/samples.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/summary.h"
#include "import/open.h"
#include "store/symbols.h"

namespace tidemark {

namespace {

using Json = nlohmann::ordered_json;

// Arguments of `tidemark`.
std::vector<std::string> words_of(const TrialRequest& request, const std::string& folder) {
  std::vector<std::string> words = {"tidemark", request.gpu.empty() ? "run" : "plan"};
  if (!request.gpu.empty()) words.insert(words.end(), {"--gpu", request.gpu, "--format", "json"});
  words.insert(words.end(), {"--force", "-o", folder + "/recording.tide"});
  words.insert(words.end(), request.options.begin(), request.options.end());
  words.emplace_back("--");
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

// As much of a line as is kept: a program may print megabytes without an end of line.
void cut(std::string& line) {
  constexpr std::size_t kMaxBytes = 4096;
  if (line.size() > kMaxBytes) line.replace(kMaxBytes, std::string::npos, "...");
}

// Why a trial failed: the last message of this program, and the last line of the planned one if that is more
// informative.
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
  cut(said);
  cut(last);
  if (said.empty()) said = end.exit_code ? fmt::format("exit code {}", *end.exit_code) : "a signal ended it";
  return last.empty() ? said : said + "; its last line: " + last;
}

std::optional<std::uint64_t> highest(const Json& devices, const char* key) {
  std::optional<std::uint64_t> most;
  for (const Json& device : devices) {
    const auto value = device.find(key);  // end() if it is not an object
    if (value == device.end() || !value->is_number_unsigned()) return std::nullopt;
    most = std::max(most.value_or(0), value->get<std::uint64_t>());
  }
  return most;
}

// The result of `tidemark plan`; nothing if it failed.
TrialResult read_plan(const std::string& folder) {
  TrialResult result;
  const Json plan = Json::parse(end_of_file(folder + "/result.json"), nullptr, false);
  if (!plan.is_object() || !plan.contains("fits") || !plan.contains("devices") || plan["devices"].empty()) {
    return result;
  }
  const Json& devices = plan["devices"];
  if (!plan["fits"].is_boolean() || !devices.is_array() || !devices.front().is_object()) return result;
  result.fits = plan["fits"].get<bool>();
  result.peak_allocated_bytes = highest(devices, "peak_allocated_bytes");
  result.peak_reserved_bytes = highest(devices, "peak_reserved_bytes");
  result.device_used_bytes = highest(devices, "device_used_bytes");
  result.memory_bytes = highest(Json::array({plan}), "memory_bytes");
  result.out_of_memory = highest(devices, "out_of_memory_count").value_or(0) != 0;
  for (const Json& sentence : devices.front().value("uncertain", Json::array())) {
    if (sentence.is_string()) result.uncertain.push_back(sentence.get<std::string>());
  }
  return result;
}

void raise_to(std::optional<std::uint64_t>& most, const std::optional<std::uint64_t>& value) {
  if (value) most = std::max(most.value_or(0), *value);
}

Result<void> add_recording(TrialResult& result, const std::string& path) {
  LedgerCollector collector;
  const auto overview = open_overview(
      path, {}, [&](const SampleRecord& record, const EventsSoFar& events) { collector.add(record, events); });
  if (!overview) return overview.error();
  SummaryOptions options;
  options.samples = std::move(collector).finish(overview->last_event_ns);
  Symbols symbols(overview->definitions);
  const auto summary = analyze_summary(*overview, symbols, options);
  if (!summary) return summary.error();
  for (const SummaryDevice& device : summary->devices) {
    if (device.totals.device.type != DeviceType::cuda || !device.totals.peak_allocated_at_ns) continue;
    raise_to(result.peak_allocated_bytes, device.totals.peak_allocated_bytes);
    raise_to(result.peak_reserved_bytes, device.totals.peak_reserved_bytes);
    result.out_of_memory = result.out_of_memory || device.totals.out_of_memory_count != 0;
  }
  for (const LedgerExtremes& ledger : summary->ledgers) {
    raise_to(result.device_used_bytes, ledger.peak.used_bytes);
    raise_to(result.memory_bytes, ledger.total_bytes);
  }
  return {};
}

// Categories of the device with the highest peak at its peak, if it exceeds `most`.
void add_categories(std::vector<HeldByCategory>& categories, std::uint64_t& most, const std::string& path) {
  const auto store = open_store(path);
  if (!store) return;
  const Symbols symbols(store->definitions);
  const auto breakdown = analyze_breakdown(*store, symbols, attribute_blocks(*store), {});
  if (!breakdown) return;  // no breakdown available
  for (const BreakdownDevice& device : breakdown->devices) {
    if (device.device.type != DeviceType::cuda || device.allocated_bytes <= most) continue;
    most = device.allocated_bytes;
    categories.clear();
    for (const CategoryBytes& part : device.categories) categories.push_back({part.category, part.bytes});
  }
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

std::vector<std::string> recordings_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tide") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

std::string end_of_file(const std::string& path) {
  constexpr std::streamoff kMaxTail = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - kMaxTail));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::vector<HeldByCategory> categories_at_peak(const std::string& folder) {
  std::vector<HeldByCategory> categories;
  std::uint64_t most = 0;
  for (const std::string& file : recordings_in(folder)) add_categories(categories, most, file);
  return categories;
}

TrialResult read_recordings(const std::string& folder, const ProcessEnd& end) {
  TrialResult result;
  for (const std::string& file : recordings_in(folder)) {
    if (const auto added = add_recording(result, file); !added) {
      result.failure = added.error().message;
      return result;
    }
  }
  if (!result.peak_allocated_bytes && end.exit_code == 0) result.failure = "the program allocated no memory on a GPU";
  if (result.out_of_memory) result.fits = false;
  if (result.peak_allocated_bytes && !result.out_of_memory && end.exit_code == 0) result.fits = true;
  return result;
}

}  // namespace tidemark
