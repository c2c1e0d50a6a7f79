// Makes the next items while the current one is used: several threads, a bounded number of items ahead, handed out in
// order.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_without_signals.h"

namespace tidemark {

/// Times of a loop over items, in nanoseconds.
struct ReadAheadTimes {
  std::size_t items = 0;        ///< number of items returned
  std::int64_t waited_ns = 0;   ///< by next(), for an item that was not ready
  std::int64_t making_ns = 0;   ///< by the threads together, for items that were made
  std::int64_t held_up_ns = 0;  ///< by the threads together, while enough items were ready
};

/// Owned by one thread, which calls next(). `Item` can be moved.
template <typename Item>
class ReadAhead {
 public:
  /// Makes item `number`; nullopt: the items ended before it. Called on several threads at once if there are several;
  /// an exception ends the items at this one.
  using Make = std::function<std::optional<Item>(std::size_t number)>;

  /// `ahead`: items that are finished or in progress beyond the last returned one. Both at least 1. Throws
  /// std::system_error if a thread cannot be started.
  ReadAhead(Make make, std::size_t ahead, std::size_t threads) : make_(std::move(make)), ahead_(ahead) {
    try {
      while (threads_.size() < threads) threads_.push_back(thread_without_signals([this] { work(); }));
    } catch (...) {
      stop();
      throw;
    }
  }
  /// Waits for items in progress.
  ~ReadAhead() { stop(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next item; nullopt after the last one, and after stop(). Rethrows exceptions of `make`; then there are no
  /// more.
  std::optional<Item> next() {
    const auto began = Clock::now();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || taken_ >= end_ || made_.contains(taken_); });
    times_.waited_ns += since(began);
    // Items after one that threw may have been made already.
    if (stopped_ || taken_ >= end_) return std::nullopt;
    auto made = made_.extract(taken_);
    ++taken_;
    if (!made.mapped().problem) ++times_.items;
    lock.unlock();
    changed_.notify_all();
    if (made.mapped().problem) std::rethrow_exception(made.mapped().problem);
    return std::move(made.mapped().item);
  }

  /// Ends the threads, and returns the finished items. May be called again.
  std::vector<Item> stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::vector<Item> left;
    for (auto& [number, made] : std::exchange(made_, {})) {
      if (made.item) left.push_back(*std::move(made.item));
    }
    return left;
  }

  [[nodiscard]] ReadAheadTimes times() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Made {
    std::optional<Item> item;
    std::exception_ptr problem;
  };

  static std::int64_t since(Clock::time_point began) { return std::chrono::nanoseconds(Clock::now() - began).count(); }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto held_up = Clock::now();
      changed_.wait(lock, [&] { return stopped_ || begun_ >= end_ || begun_ < taken_ + ahead_; });
      times_.held_up_ns += since(held_up);
      if (stopped_ || begun_ >= end_) return;
      const std::size_t number = begun_++;
      lock.unlock();
      const auto began = Clock::now();
      Made made;
      try {
        made.item = make_(number);
      } catch (...) {
        made.problem = std::current_exception();
      }
      lock.lock();
      times_.making_ns += since(began);
      if (!made.item) end_ = std::min(end_, made.problem ? number + 1 : number);
      if (made.item || number < end_) made_.insert_or_assign(number, std::move(made));
      changed_.notify_all();
    }
  }

  Make make_;
  std::size_t ahead_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Made> made_;  ///< by number
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
  std::size_t end_ = std::numeric_limits<std::size_t>::max();  ///< the number of items, when known
  bool stopped_ = false;
  ReadAheadTimes times_;
  std::vector<std::thread> threads_;
};

}  // namespace tidemark
