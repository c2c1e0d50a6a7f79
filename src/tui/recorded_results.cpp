#include "tui/recorded_results.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread_without_signals.h"
#include "follow/sliding_window.h"
#include "report/common/printable.h"
#include "report/host_ledger/words.h"
#include "tui/window_results.h"

namespace tidemark::tui {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxRecordings = 8;
constexpr std::size_t kMaxUntakenPeaks = 10'000;
constexpr SlidingWindow::Limits kWindow = {.length = std::chrono::minutes(1), .events = 200'000};  // some 16 MiB
constexpr std::chrono::milliseconds kTurn = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds kResults = std::chrono::milliseconds(2000);
// The first ones wait for what recorders tell, and for what was recorded before, so long at most.
constexpr std::chrono::milliseconds kFirstResults = std::chrono::milliseconds(2000);
constexpr std::chrono::milliseconds kAnswers = std::chrono::milliseconds(10);
constexpr int kShareOfTime = 10;  // analysing takes a tenth of it at most

// What RecordingsWatch asks for, without the histories: those may be megabytes.
MachineState without_histories(const MachineState& machine) {
  MachineState plain;
  plain.now_ns = machine.now_ns;
  for (const WatchedDevice& device : machine.devices) {
    WatchedDevice& copy = plain.devices.emplace_back();
    copy.key = device.key;
    copy.is_host = device.is_host;
    copy.info = device.info;
  }
  for (const WatchedProcess& process : machine.processes) {
    WatchedProcess& copy = plain.processes.emplace_back();
    copy.pid = process.pid;
    copy.kind = process.kind;
  }
  return plain;
}

ProcessResults results_of(const RecordingsWatch& recordings, const RecordedProcess& process, std::size_t position) {
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
  if (process.problem.empty() && process.caught_up) {
    fill_results(results, attribute(recordings.window(position)), recordings.window_begin_ns(position));
  }
  return results;
}

}  // namespace

struct RecordedResults::Shared {
  Shared(std::chrono::nanoseconds interval, bool listed)
      : only_listed(listed), recordings(interval, kWindow, kMaxRecordings) {}

  const bool only_listed;
  std::atomic<bool> go_on{true};
  std::atomic<bool> wanted{false};
  std::mutex mutex;
  std::condition_variable woken;
  MachineState machine;  // guarded by mutex, as what follows
  std::vector<RecordedProcess> processes;
  std::vector<RecordedPeak> peaks;
  std::optional<std::vector<ProcessResults>> results;
  std::thread thread;
  RecordingsWatch recordings;  // of the thread

  void run() {
    const Clock::time_point patience = Clock::now() + kFirstResults;
    Clock::time_point next_results = Clock::now();
    std::unique_lock lock(mutex);
    while (go_on) {
      const MachineState now = machine;
      lock.unlock();
      follow(now);
      const bool late = Clock::now() >= patience;
      const bool heard = recordings.heard() || late;
      if (wanted && Clock::now() >= next_results && (late || (heard && recordings.caught_up()))) {
        const Clock::time_point begin = Clock::now();
        analyse();
        next_results = Clock::now() + std::max<Clock::duration>(kResults, (Clock::now() - begin) * kShareOfTime);
      }
      lock.lock();
      // What was recorded before is read at once, the rest as it comes.
      if (recordings.caught_up()) woken.wait_for(lock, heard ? kTurn : kAnswers, [this] { return !go_on; });
    }
  }

  void follow(const MachineState& now) {
    recordings.update(now, only_listed);
    recordings.forget_ended();
    recordings.update_owners();
    std::vector<RecordedProcess> found = recordings.processes();
    const std::vector<RecordedPeak> found_peaks = recordings.take_peaks();
    const std::lock_guard lock(mutex);
    processes = std::move(found);
    if (peaks.size() < kMaxUntakenPeaks) peaks.insert(peaks.end(), found_peaks.begin(), found_peaks.end());
  }

  void analyse() {
    std::vector<ProcessResults> all;
    const std::vector<RecordedProcess> found = recordings.processes();
    for (std::size_t n = 0; n < found.size(); ++n) {
      if (!go_on) return;
      all.push_back(results_of(recordings, found[n], n));
    }
    const std::lock_guard lock(mutex);
    results = std::move(all);
  }
};

RecordedResults::RecordedResults(std::chrono::nanoseconds interval, bool only_listed)
    : shared_(std::make_unique<Shared>(interval, only_listed)) {}

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
  shared_->wanted = wanted;
}

void RecordedResults::tell(const MachineState& machine) {
  if (!started_) return;
  MachineState plain = without_histories(machine);
  const std::lock_guard lock(shared_->mutex);
  shared_->machine = std::move(plain);
}

std::optional<std::vector<ProcessResults>> RecordedResults::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, std::nullopt);
}

std::vector<RecordedPeak> RecordedResults::take_peaks() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->peaks, {});
}

std::vector<RecordedProcess> RecordedResults::processes() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->processes;
}

}  // namespace tidemark::tui
