#include "tui/recorded_results.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "analyze/attribution/attributed_store.h"
#include "base/thread_without_signals.h"
#include "query/words/host_ledger.h"
#include "query/words/printable.h"
#include "tui/window_results.h"

namespace tidemark::tui {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTurn = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds kSoon = std::chrono::milliseconds(10);  // while first results are awaited
constexpr std::chrono::milliseconds kResults = std::chrono::milliseconds(2000);
// The first ones wait for what recorders tell, and for what was recorded before, so long at most.
constexpr std::chrono::milliseconds kFirstResults = std::chrono::milliseconds(2000);
constexpr int kShareOfTime = 10;  // analysing takes a tenth of it at most

/// Where the engine is with recordings.
struct Progress {
  bool has_looked = false;  ///< for recorders
  bool heard = false;
  bool caught_up = false;
  std::vector<LiveRecording> recordings;
};

/// What is analysed of one of them.
struct LastPart {
  RecordedProcess process;
  std::optional<Store> window;  ///< none: there is nothing to analyse yet, or any more
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
  return results;
}

}  // namespace

struct RecordedResults::Shared {
  explicit Shared(MonitorThread& given) : monitor(given) {}

  MonitorThread& monitor;
  std::atomic<bool> go_on{true};
  std::mutex mutex;
  std::condition_variable woken;
  bool wanted = false;  // guarded by mutex, as what follows
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

  /// The engine is held up for one recording at a time. None where its list has changed since.
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

  /// False where it is too early for results.
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

void RecordedResults::want(bool wanted) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->wanted = wanted;
  }
  shared_->woken.notify_all();
}

std::optional<std::vector<ProcessResults>> RecordedResults::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, std::nullopt);
}

}  // namespace tidemark::tui
