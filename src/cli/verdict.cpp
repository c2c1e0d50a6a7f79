#include "cli/verdict.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "analyze/ledger/replay.h"
#include "analyze/oom/explain.h"
#include "analyze/usage/table.h"
#include "import/open.h"
#include "query/open_recording.h"
#include "report/explain/verdict.h"

namespace tidemark::cli {
namespace {

// Their blocks take some 1.2 GB while they are read, perhaps on a machine that has just run out of memory.
constexpr std::uint64_t kMaxEvents = 15'000'000;
constexpr std::size_t kMaxFiles = 3;

// A program has the one of who recorded it, unless it sets another.
std::optional<std::uint64_t> address_space_limit() {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::vector<std::string> device_verdict(const DumpedFile& file) {
  auto store = open_attributed(file.path);
  if (!store) return {store.error().message};
  Symbols symbols(store->definitions);
  ExplainOptions options;
  options.attribution = store->attribution.get();
  auto explanation = analyze_explain(*store, symbols, options);
  return explanation ? device_oom_lines(*explanation, address_space_limit())
                     : std::vector<std::string>{explanation.error().message};
}

std::vector<std::string> host_verdict(const Dump& dump, const DumpedFile* file) {
  HostOomFacts facts;
  for (const KilledProcess& killed : dump.killed) facts.kills.push_back({killed, {}});
  facts.unexplained_kills = dump.unexplained_kills;
  facts.cgroup = dump.cgroup;
  if (file == nullptr || file->event_count > kMaxEvents) return host_oom_lines(facts, nullptr);
  auto store = open_attributed(file->path);
  if (!store) return host_oom_lines(facts, nullptr);
  // As the recording has them, with where the memory was. One that ended before knows of none.
  for (const HostKill& kill : collect_host(*store).kills) {
    for (HostKill& known : facts.kills) {
      if (known.killed.process.pid == kill.killed.process.pid) known = kill;
    }
  }
  Symbols symbols(store->definitions);
  TableOptions options;
  options.at.kind = Moment::Kind::end;
  options.device = "cpu";
  const auto held = analyze_table(*store, symbols, options);
  return host_oom_lines(facts, held ? &*held : nullptr);
}

std::vector<std::string> other_verdict(const Dump& dump, const DumpedFile& file) {
  const auto overview = open_overview(file.path);
  if (!overview) return {overview.error().message};
  return held_lines(*overview, dump.reason == DumpReason::signal);
}

// What the lines are about: where a request failed, of whom was killed, else the first.
const DumpedFile* file_to_explain(const Dump& dump) {
  const auto killed = [&](const DumpedFile& file) {
    return std::any_of(dump.killed.begin(), dump.killed.end(),
                       [&](const KilledProcess& process) { return process.process.pid == file.pid; });
  };
  for (const DumpedFile& file : dump.files) {
    if (dump.reason == DumpReason::host_oom ? killed(file) : file.oom_count > 0) return &file;
  }
  return dump.files.empty() ? nullptr : &dump.files.front();
}

std::vector<std::string> cause_lines(const Dump& dump, const DumpedFile* file) {
  if (dump.reason == DumpReason::host_oom) return host_verdict(dump, file);
  if (file == nullptr) return {};
  const bool failed_request = file->oom_count > 0 && dump.reason != DumpReason::signal;
  if (failed_request && file->event_count > kMaxEvents) {
    return {unexplained_oom_line(file->path)};
  }
  return failed_request ? device_verdict(*file) : other_verdict(dump, *file);
}

}  // namespace

std::vector<std::string> verdict_of(const Dump& dump) {
  std::vector<DumpedRecording> recordings;
  for (const DumpedFile& file : dump.files) {
    recordings.push_back({file.path, file.pid, file.duration_ns, file.event_count, file.bytes});
  }
  std::vector<std::string> errors;
  if (!dump.errors.empty()) errors.push_back(not_dumped_line(dump.errors.front(), dump.left_in));
  const std::vector<std::string> files = dumped_lines(recordings, kMaxFiles - errors.size());
  std::vector<std::string> lines = cause_lines(dump, file_to_explain(dump));
  lines.resize(std::min(lines.size(), kMaxVerdictLines - files.size() - errors.size()));
  lines.insert(lines.end(), files.begin(), files.end());
  lines.insert(lines.end(), errors.begin(), errors.end());
  return lines;
}

}  // namespace tidemark::cli
