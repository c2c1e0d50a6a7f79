#include "base/worker.h"

#include <system_error>
#include <utility>

#include "base/thread_without_signals.h"

namespace tidemark {

void Worker::add(Work work) {
  std::unique_lock lock(mutex_);
  if (finished_) {
    ++dropped_;
    return;
  }
  if (waiting_.size() == most_) {
    waiting_.pop_front();
    ++dropped_;
  }
  waiting_.push_back(std::move(work));
  changed_.notify_all();
  if (thread_.joinable()) return;
  try {
    thread_ = thread_without_signals([this] { run(); });
  } catch (const std::system_error& error) {
    const bool first = !std::exchange(told_, true);
    lock.unlock();
    if (first) problem_("no thread can be started (" + error.code().message() + "), which is tried again");
  }
}

void Worker::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (thread_.joinable()) changed_.wait_for(lock, patience, [this] { return waiting_.empty() && !busy_; });
}

void Worker::stop() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) {
    dropped_ += waiting_.size();
    waiting_.clear();
  }
  finished_ = true;
  stopping_ = true;
  changed_.notify_all();
}

void Worker::finish(std::chrono::milliseconds patience) {
  wait(patience);
  stop();
  {
    std::unique_lock lock(mutex_);
    while (!thread_.joinable() && !waiting_.empty()) work(lock);
  }
  if (thread_.joinable()) thread_.join();
}

bool Worker::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_.load(); });
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return finished_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    work(lock);
  }
}

void Worker::work(std::unique_lock<std::mutex>& lock) {
  const Work first = std::move(waiting_.front());
  waiting_.pop_front();
  busy_ = true;
  lock.unlock();
  first();
  lock.lock();
  busy_ = false;
  changed_.notify_all();
}

}  // namespace tidemark
