#include "tui/recorded_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "analyze/advice/advice.h"
#include "analyze/attribution/attributed_store.h"
#include "analyze/fragmentation/fragmentation.h"
#include "analyze/leaks/leaks.h"
#include "analyze/usage/table.h"
#include "base/thread_without_signals.h"
#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/attribution.h"
#include "query/words/fragmentation.h"
#include "query/words/host_ledger.h"
#include "query/words/monitors.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/fragmentation/words.h"
#include "report/leaks/words.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kMaxHolders = 200;
constexpr std::size_t kListed = 5;  // of a finding
constexpr std::size_t kNameColumns = 200;
constexpr double kMuchUnused = 0.2;  // of reserved memory
constexpr std::array<GroupBy, kHeldBy> kGroups = {GroupBy::stack, GroupBy::module, GroupBy::category};

std::string name_of_row(const TableRow& row) {
  if (const auto* stack = std::get_if<NamedStack>(&row.key)) return stack_text_with_callers(*stack, kNameColumns);
  if (const auto* owner = std::get_if<BlockOwner>(&row.key)) return owner_text(*owner);
  return "";
}

class WindowResults {
 public:
  WindowResults(ProcessResults& process, const AttributedStore& store, std::uint64_t begin_ns)
      : process_(process),
        store_(store),
        symbols_(store.definitions),
        begin_(Moment{Moment::Kind::time, begin_ns, 0}) {}

  void add_holders() {
    for (std::size_t by = 0; by < kHeldBy; ++by) add_holders(by);
    if (const auto peaks = table(GroupBy::stack, {Moment::Kind::peak, 0, 0}, 1)) {
      for (const TableSection& section : peaks->sections) {
        if (!section.device) continue;
        // If free events were lost, the current blocks exceed the allocator's total, which determines the peak.
        DeviceHolders& device = device_of(*section.device);
        device.peak_bytes = std::max(section.allocated_bytes, device.allocated_bytes);
      }
    }
  }

  void add_findings() {
    add_leaks();
    add_fragmentation();
    if (store_.attribution != nullptr) add_advice();
  }

 private:
  [[nodiscard]] std::optional<Table> table(GroupBy by, const Moment& at, std::size_t top) {
    if (needs_attribution(by) && store_.attribution == nullptr) return std::nullopt;
    auto table = analyze_table(store_, symbols_,
                               {.by = by, .at = at, .device = {}, .top = top, .attribution = store_.attribution.get()});
    return table ? std::optional(std::move(*table)) : std::nullopt;
  }

  DeviceHolders& device_of(const DeviceAt& device) {
    const std::string name = to_string(device.device);
    const auto found = std::find_if(process_.devices.begin(), process_.devices.end(),
                                    [&](const DeviceHolders& each) { return each.device == name; });
    if (found != process_.devices.end()) return *found;
    process_.devices.push_back({.device = name, .allocated_bytes = 0, .peak_bytes = 0, .by = {}});
    return process_.devices.back();
  }

  void add_holders(std::size_t by) {
    const auto now = table(kGroups[by], {Moment::Kind::end, 0, 0}, kMaxHolders);
    if (!now) return;
    // By name: equal-looking ones count as one.
    std::map<std::pair<std::string, std::string>, std::uint64_t> before;
    if (const auto earlier = table(kGroups[by], begin_, 0)) {
      for (const TableSection& section : earlier->sections) {
        if (!section.device) continue;
        const std::string device = to_string(section.device->device);
        for (const TableRow& row : section.rows) before[{device, name_of_row(row)}] += row.bytes;
      }
    }
    for (const TableSection& section : now->sections) {
      if (!section.device) continue;
      DeviceHolders& device = device_of(*section.device);
      device.allocated_bytes = section.allocated_bytes;
      std::vector<Holder>& holders = device.by[by].emplace();
      for (const TableRow& row : section.rows) {
        const std::string name = name_of_row(row);
        const std::uint64_t earlier = std::exchange(before[{device.device, name}], 0);
        const auto* stack = std::get_if<NamedStack>(&row.key);
        holders.push_back({.name = name,
                           .stack = stack == nullptr ? std::nullopt : std::optional(*stack),
                           .bytes = row.bytes,
                           .blocks = row.blocks,
                           .change_bytes = static_cast<std::int64_t>(row.bytes - earlier)});
      }
    }
  }

  void add_leaks() {
    LeakOptions options;
    options.top = kListed;
    options.attribution = store_.attribution.get();
    const auto leaks = analyze_leaks(store_, symbols_, options);
    if (!leaks) return;
    for (const HostGrowth& growth : leaks->host_growth) {
      process_.findings.push_back({FindingKind::note, host_growth_text(growth), {host_growth_causes(growth)}});
    }
    if (leaks->verdict != LeakVerdict::leak) return;
    Finding finding{FindingKind::warning, leak_verdict(*leaks), {}};
    for (const LeakSite& leak : leaks->leaks) {
      finding.details.push_back(fmt::format("{} a step: {}", rate_text(leak.growth.bytes_per_step.value),
                                            stack_text_with_callers(leak.stack, kNameColumns)));
    }
    process_.findings.push_back(std::move(finding));
  }

  void add_fragmentation() {
    FragmentationOptions options;
    options.begin_ns = begin_.time_ns;
    const auto fragmentation = analyze_fragmentation(store_, symbols_, options);
    if (!fragmentation) return;
    for (const FragmentationDevice& device : fragmentation->devices) {
      const auto unused = device.at_end.unused_share();
      if (!unused || *unused < kMuchUnused || !device.at_end.reserved) continue;
      const std::string name = to_string(device.totals.device);
      Finding finding{FindingKind::note,
                      fmt::format("{}: {} of {} reserved is not allocated", name, share_text(*unused),
                                  format_bytes(*device.at_end.reserved)),
                      {}};
      for (const MeasureRow& row : measure_rows(device)) {
        if (!row.cells.empty()) finding.details.push_back(fmt::format("{}: {}", row.label, row.cells.back()));
      }
      finding.details.push_back(
          fmt::format("the share that is not allocated {}", trend_text(device.unused.share_trend)));
      finding.details.push_back("pattern: " + unused_pattern_text(device.unused));
      for (const FragmentationAdvice& advice : device.advice) {
        finding.details.push_back(advice_text(advice, device.unused, fragmentation->recording).change);
      }
      process_.findings.push_back(std::move(finding));
    }
  }

  void add_advice() {
    Adviser adviser(store_, symbols_, *store_.attribution);
    for (std::size_t device = 0; device < store_.devices.size(); ++device) {
      for (const Advice& advice : adviser.at_peak(device)) {
        process_.findings.push_back(
            {FindingKind::note,
             fmt::format("saves {}: {}", saving_text(advice), advice_change_at(advice, kNameColumns)),
             {advice_finding(advice), advice_saving(advice), advice_place(advice)}});
      }
    }
  }

  ProcessResults& process_;
  const AttributedStore& store_;
  Symbols symbols_;
  Moment begin_;
};

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTurn = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds kSoon = std::chrono::milliseconds(10);  // while first results are awaited
constexpr std::chrono::milliseconds kResults = std::chrono::milliseconds(2000);
// Maximum time that the first results wait for recorders and for earlier data.
constexpr std::chrono::milliseconds kFirstResults = std::chrono::milliseconds(2000);
constexpr int kShareOfTime = 10;  // share of time for analysing: at most a tenth

/// The engine's progress in reading recordings.
struct Progress {
  bool has_looked = false;  ///< has searched for recorders
  bool heard = false;
  bool caught_up = false;
  std::vector<LiveRecording> recordings;
};

/// Input of the analyses of one recording.
struct LastPart {
  RecordedProcess process;
  std::optional<Store> window;  ///< nullopt: nothing to analyse yet, or any more
  std::uint64_t begin_ns = 0;
};

ProcessResults results_of(LastPart part) {
  const RecordedProcess& process = part.process;
  ProcessResults results;
  results.pid = process.recording.pid;
  results.name = printable(process.recording.command);
  results.problem = printable(process.problem);
  results.reading = process.problem.empty() && !process.caught_up;
  for (const KilledProcess& killed : process.killed) {
    results.findings.push_back({FindingKind::problem,
                                process_words(killed.process) + " was " + killed_words(killed, ""),
                                {held_words(killed.process.pages), std::string(evidence_words(killed.evidence))}});
  }
  if (process.lag.is_known()) results.findings.push_back({FindingKind::warning, printable(lag_text(process)), {}});
  if (part.window) fill_results(results, attribute(std::move(*part.window)), part.begin_ns);
  std::ranges::stable_sort(results.findings, std::ranges::greater(), &Finding::kind);
  return results;
}

}  // namespace

void fill_results(ProcessResults& process, const AttributedStore& window, std::uint64_t begin_ns) {
  if (window.event_count == 0) return;
  WindowResults results(process, window, begin_ns);
  results.add_holders();
  results.add_findings();
}

struct RecordedResults::Shared {
  explicit Shared(MonitorThread& given) : monitor(given) {}

  MonitorThread& monitor;
  std::atomic<bool> go_on{true};
  std::mutex mutex;
  std::condition_variable woken;
  bool wanted = false;  // guarded by mutex, as are the following
  std::optional<std::vector<ProcessResults>> results;
  std::thread thread;

  void run() {
    const Clock::time_point patience = Clock::now() + kFirstResults;
    Clock::time_point next_results = Clock::now();
    bool has_results = false;
    std::unique_lock lock(mutex);
    while (go_on) {
      woken.wait(lock, [this] { return !go_on || wanted; });
      lock.unlock();
      if (go_on && Clock::now() >= next_results) {
        const Clock::time_point begin = Clock::now();
        if (analyse(progress(), begin >= patience)) {
          has_results = true;
          next_results = Clock::now() + std::max<Clock::duration>(kResults, (Clock::now() - begin) * kShareOfTime);
        }
      }
      lock.lock();
      woken.wait_for(lock, has_results ? kTurn : kSoon, [this] { return !go_on; });
    }
  }

  [[nodiscard]] Progress progress() {
    Progress now;
    now.has_looked = monitor.snapshot() != nullptr;
    static_cast<void>(monitor.visit([&now](const MonitorEngine& engine) {
      now.heard = engine.recordings().heard();
      now.caught_up = engine.recordings().caught_up();
      const std::size_t count = std::min(engine.recordings().count(), kMaxRecordings);
      for (std::size_t n = 0; n < count; ++n) now.recordings.push_back(engine.recordings().process(n).recording);
    }));
    return now;
  }

  /// Locks the engine for one recording at a time. nullopt if its list has changed since.
  [[nodiscard]] std::optional<LastPart> last_part(const LiveRecording& recording, std::size_t position) {
    std::optional<LastPart> part;
    static_cast<void>(monitor.visit([&](const MonitorEngine& engine) {
      const RecordingsWatch& recordings = engine.recordings();
      if (position >= recordings.count() || !(recordings.process(position).recording == recording)) return;
      part.emplace().process = recordings.process(position);
      if (!part->process.problem.empty() || !part->process.caught_up) return;
      part->window = recordings.window(position);
      part->begin_ns = recordings.window_begin_ns(position);
    }));
    return part;
  }

  /// False if it is too early for results.
  bool analyse(const Progress& now, bool late) {
    if (!now.has_looked || (!late && !(now.heard && now.caught_up))) return false;
    std::vector<ProcessResults> all;
    for (std::size_t n = 0; n < now.recordings.size(); ++n) {
      if (!go_on) return false;
      auto part = last_part(now.recordings[n], n);
      if (!part) return false;
      all.push_back(results_of(std::move(*part)));
    }
    const std::lock_guard lock(mutex);
    results = std::move(all);
    return true;
  }
};

RecordedResults::RecordedResults(MonitorThread& monitor) : shared_(std::make_unique<Shared>(monitor)) {}

RecordedResults::~RecordedResults() {
  if (!started_) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->go_on = false;
  }
  shared_->woken.notify_all();
  shared_->thread.join();
}

void RecordedResults::start() {
  if (started_) return;
  started_ = true;
  shared_->thread = thread_without_signals([shared = shared_.get()] { shared->run(); });
}

void RecordedResults::set_enabled(bool enabled) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->wanted = enabled;
  }
  shared_->woken.notify_all();
}

std::optional<std::vector<ProcessResults>> RecordedResults::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, std::nullopt);
}

}  // namespace tidemark::tui
