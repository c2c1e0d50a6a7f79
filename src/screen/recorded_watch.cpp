#include "screen/recorded_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/thread_without_signals.h"
#include "collect/recorder/kept_folder.h"
#include "collect/recorder/live_recordings.h"
#include "live/follower.h"
#include "live/sliding_window.h"
#include "report/words/printable.h"
#include "screen/window_results.h"

namespace tidemark::screen {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostRecordings = 8;
constexpr SlidingWindow::Limits kLimits = {.length = std::chrono::minutes(1), .events = 200'000};  // some 16 MiB
constexpr std::chrono::milliseconds kTurn = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds kResults = std::chrono::milliseconds(2000);
constexpr int kShareOfTime = 10;  // analysing takes a tenth of it at most

}  // namespace

// A recording that is followed.
struct FollowedWindow {
  LiveRecording recording;
  std::unique_ptr<Follower> follower;  // null: it cannot be opened
  SlidingWindow window{kLimits};
  std::string problem;

  void open() {
    auto opened = Follower::open_live(recording.path);
    if (opened) {
      follower = std::move(*opened);
    } else {
      problem = opened.error().message;
    }
  }

  void open_again() {
    auto opened = Follower::open_live(recording.path);
    if (!opened) return;
    follower = std::move(*opened);
    window = SlidingWindow(kLimits);
  }

  // All there is now, while `go_on`.
  void read(const std::atomic<bool>& go_on) {
    FollowedBatch batch;
    // Of a part that is kept no more than that is remembered. What cannot be opened any more has ended.
    if (follower && follower->moved_on() && follower->state() == FollowState::growing) open_again();
    while (follower && go_on) {
      const auto more = follower->next(batch);
      if (!more) {
        problem = more.error().message;
        follower.reset();
      } else if (*more) {
        batch.deliver_to(window);
      } else {
        if (follower->state() == FollowState::changed) problem = "the recording was replaced while it was read";
        return;
      }
    }
  }

  [[nodiscard]] RecordedProcess results() const {
    RecordedProcess process;
    process.pid = recording.pid;
    process.name = printable(recording.command);
    process.file = follower ? follower->path() : recording.path;
    process.problem = printable(problem);
    if (follower && problem.empty()) fill_results(process, window, follower->definitions());
    return process;
  }
};

struct RecordedWatch::Shared {
  std::atomic<bool> go_on{true};
  std::atomic<bool> wanted{false};
  std::mutex mutex;
  std::condition_variable woken;
  std::optional<std::vector<RecordedProcess>> results;  // guarded by mutex
  std::thread thread;
  std::map<pid_t, FollowedWindow> followed;  // of the thread

  void run() {
    Clock::time_point next_results = Clock::now();
    while (go_on) {
      find();
      for (auto& [pid, each] : followed) each.read(go_on);
      if (wanted && Clock::now() >= next_results) {
        const Clock::time_point begin = Clock::now();
        publish();
        next_results = Clock::now() + std::max<Clock::duration>(kResults, (Clock::now() - begin) * kShareOfTime);
      }
      std::unique_lock lock(mutex);
      woken.wait_for(lock, kTurn, [this] { return !go_on; });
    }
  }

  // Those that ended are forgotten, with a file that changed its name (a rotated one) the new one is followed.
  void find() {
    const std::vector<LiveRecording> found = find_live_recordings();
    std::erase_if(followed, [&](const auto& entry) {
      return std::none_of(found.begin(), found.end(), [&](const LiveRecording& recording) {
        return recording.pid == entry.first && same_recording(recording.path, entry.second.recording.path);
      });
    });
    for (const LiveRecording& recording : found) {
      if (followed.size() == kMostRecordings) break;
      const auto [entry, is_new] = followed.try_emplace(recording.pid);
      if (!is_new) continue;
      entry->second.recording = recording;
      entry->second.open();
    }
  }

  void publish() {
    std::vector<RecordedProcess> all;
    for (const auto& [pid, each] : followed) {
      if (!go_on) return;
      all.push_back(each.results());
    }
    const std::lock_guard lock(mutex);
    results = std::move(all);
  }
};

RecordedWatch::RecordedWatch() : shared_(std::make_unique<Shared>()) {}

RecordedWatch::~RecordedWatch() {
  if (!started_) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->go_on = false;
  }
  shared_->woken.notify_all();
  shared_->thread.join();
}

void RecordedWatch::start() {
  if (started_) return;
  started_ = true;
  shared_->thread = thread_without_signals([shared = shared_.get()] { shared->run(); });
}

void RecordedWatch::want(bool wanted) {
  shared_->wanted = wanted;
}

std::optional<std::vector<RecordedProcess>> RecordedWatch::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, std::nullopt);
}

}  // namespace tidemark::screen
