// Runs slow work in order on a separate thread, so that sampling never waits.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace tidemark {

/// Thread-safe. The thread starts with the first work; if it cannot be created, that is tried again with the next.
class Worker {
 public:
  using Work = std::function<void()>;
  using Problem = std::function<void(const std::string&)>;

  /// Holds at most `most` pieces of work: beyond that the oldest is dropped for a new one, and counted. add() calls
  /// `problem` once, with a clause, if no thread can be created.
  Worker(std::size_t most, Problem problem) : most_(most), problem_(std::move(problem)) {}
  /// Drops unfinished work; see finish().
  ~Worker() { finish(std::chrono::milliseconds(0)); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add(Work work);
  /// Waits until all work is done, but no longer than this, or until there is no thread for it.
  void wait(std::chrono::milliseconds patience);
  /// Requests the current work to stop. Waiting and later work is dropped.
  void stop();
  /// wait(), stop(), and waits for the work under way. Without a thread the work is done here, as work that has to come
  /// to an end.
  void finish(std::chrono::milliseconds patience);

  /// True once the current work has to end. To be read by the work.
  [[nodiscard]] const std::atomic<bool>& stopping() const { return stopping_; }
  /// Pauses the work: false if it has to end instead.
  [[nodiscard]] bool pause(std::chrono::milliseconds time);
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(); }
  void count_dropped() { ++dropped_; }

 private:
  void run();
  /// Does the first that is waiting.
  void work(std::unique_lock<std::mutex>& lock);

  const std::size_t most_;
  const Problem problem_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  std::thread thread_;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::atomic<bool> stopping_ = false;
  bool busy_ = false;
  bool finished_ = false;
  bool told_ = false;
};

/// The processors that this process may use (its affinity); 0: unknown. Thread-safe.
[[nodiscard]] inline std::uint32_t usable_processors() {
  cpu_set_t usable;
  return ::sched_getaffinity(0, sizeof(usable), &usable) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&usable)) : 0;
}

}  // namespace tidemark
