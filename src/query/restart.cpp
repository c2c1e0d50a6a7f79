#include "query/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "import/open.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

// More recordings than this in one folder are a mistake.
constexpr std::size_t kMaxRecordings = 65536;

Result<std::vector<std::string>> recordings_of(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == ".tide" && entry->is_regular_file(ignored))
      files.push_back(entry->path().string());
    if (files.size() > kMaxRecordings) {
      return Error{fmt::format("{}: more than {} recordings; name those of the job", folder, kMaxRecordings)};
    }
  }
  if (error) return Error{fmt::format("{}: {}", folder, error.message())};
  if (files.empty()) {
    return Error{
        fmt::format("{}: it contains no recordings (*.tide); `tidemark run -o {}/train.tide -- PROGRAM` "
                    "writes one of each rank",
                    folder, folder)};
  }
  std::ranges::sort(files);
  return files;
}

// Totals and how it ended, without its blocks.
Result<RankRecord> read_record(const std::string& path, const RestartRequest& request) {
  if (auto status = check_recording_path(path); !status) return status.error();
  HostLedgerCollector host;
  const auto overview =
      open_overview(path, request.progress ? request.progress(path, "Reading") : Progress(),
                    [&host](const SampleRecord& sample, const EventsSoFar& events) { host.add(sample, &events); });
  if (!overview) return overview.error();
  const Symbols symbols(overview->definitions);
  const HostLedgers ledgers = std::move(host).finish(*overview);
  return rank_record(*overview, describe_recording(*overview, symbols), ledgers.kills);
}

// False if the process continued with further steps.
Result<bool> examine_first(const RestartRequest& request, RestartVerdict& verdict) {
  const RankRecord& record = verdict.ranks[*verdict.first];
  const auto store = open_attributed(
      record.recording.path, request.progress ? request.progress(record.recording.path, "Reading") : Progress());
  if (!store) return store.error();
  const auto attribution =
      store->attribution ? store->attribution : std::make_shared<const Attribution>(attribute_blocks(*store));
  Symbols symbols(store->definitions);
  ExplainOptions options;
  options.failures = 1;
  options.attribution = attribution.get();
  auto explanation = analyze_explain(*store, symbols, options);
  if (!explanation) return explanation.error();
  if (record.end == RankEnd::killed) {
    for (const HostKill& kill : explanation->kills) {
      if (record.killed_pid == kill.killed.process.pid) verdict.kill = kill;
    }
    verdict.recurrence.reason = RestartReason::host_memory;
    verdict.explanation = std::move(*explanation);
    return true;
  }
  if (explanation->failures.empty()) return true;
  FailureEvidence evidence = examine_failure(*store, *attribution, explanation->failures.front());
  const Recurrence recurrence = decide_recurrence(evidence);
  if (recurrence.reason == RestartReason::survived) return false;
  if (request.simulate && wants_simulation(*explanation)) {
    if (const auto simulation = request.simulate(*store, symbols)) cite_simulation(*simulation, *explanation);
  }
  verdict.recurrence = recurrence;
  verdict.changes =
      find_restart_changes(explanation->failures.front(), evidence, recurrence, explanation->simulated_by);
  verdict.evidence = std::move(evidence);
  verdict.explanation = std::move(*explanation);
  return true;
}

}  // namespace

Result<RestartVerdict> judge_restart(const RestartRequest& request) {
  RestartVerdict verdict;
  for (const std::string& path : request.paths) {
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    const auto files = is_folder ? recordings_of(path) : Result<std::vector<std::string>>(std::vector{path});
    if (!files) return files.error();
    std::vector<RankRecord> records;
    for (const std::string& file : *files) {
      auto record = read_record(file, request);
      if (!record) return record.error();
      records.push_back(std::move(*record));
    }
    const std::size_t all = records.size();
    if (is_folder) records = newest_attempt(std::move(records));
    verdict.older_recordings += all - records.size();
    std::ranges::move(records, std::back_inserter(verdict.ranks));
  }
  order_ranks(verdict);
  bool survived = false;
  while (verdict.first) {
    const auto examined = examine_first(request, verdict);
    if (!examined) return examined.error();
    if (*examined) return verdict;
    survived = true;
    verdict.ranks[*verdict.first].end = RankEnd::survived;
    order_ranks(verdict);
  }
  verdict.recurrence.will_recur = survived ? WillRecur::no : WillRecur::unknown;
  verdict.recurrence.reason = survived ? RestartReason::survived : RestartReason::no_failure;
  verdict.recurrence.confidence = survived ? Confidence::estimated : Confidence::unknown;
  return verdict;
}

}  // namespace tidemark
