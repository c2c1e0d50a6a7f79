#include "publish/worker.h"

#include <utility>

#include "base/thread_without_signals.h"

namespace tidemark {

void Worker::add(Work work) {
  const std::lock_guard lock(mutex_);
  if (finished_) {
    ++dropped_;
    return;
  }
  if (waiting_.size() == most_) {
    waiting_.pop_front();
    ++dropped_;
  }
  waiting_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = thread_without_signals([this] { run(); });
  changed_.notify_all();
}

void Worker::finish(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return waiting_.empty() && !busy_; });
    dropped_ += waiting_.size();
    waiting_.clear();
    finished_ = true;
    stopping_ = true;
  }
  changed_.notify_all();
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
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace tidemark
