#include "collect/recorder/sampling/sampler.h"

#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/thread_without_signals.h"

namespace tidemark {
namespace {

// Readings that nobody collects: the recorder is stopped, say by a debugger.
constexpr std::size_t kMaxReadings = 100'000;

}  // namespace

struct Sampler::Shared {
  Shared(SampleOptions given, std::int64_t job_pid, const TickClock& given_clock)
      : options(std::move(given)), job(job_pid), clock(given_clock) {}

  const SampleOptions options;
  const std::int64_t job;
  const TickClock clock;  // a copy: the thread may outlive the recorder

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Reading> readings;
  bool stop = false;
  bool ended = false;
};

Sampler::Sampler(SampleOptions options, std::int64_t job, const TickClock& clock)
    : shared_(std::make_shared<Shared>(std::move(options), job, clock)) {}

Sampler::~Sampler() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  if (started_) shared_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return shared_->ended; });
}

void Sampler::start() {
  if (started_ || !shared_->options.enabled) return;
  started_ = true;
  try {
    thread_without_signals([shared = shared_] { run(shared); }).detach();
  } catch (const std::system_error&) {
    shared_->ended = true;  // no thread to be had: no samples
  }
}

void Sampler::run(const std::shared_ptr<Shared>& shared) {
  try {
    SampleTaker taker(shared->options, shared->job, shared->clock);
    std::vector<Reading> readings = {Reading{0, taker.found()}};
    std::unique_lock lock(shared->mutex);
    while (!shared->stop) {
      lock.unlock();
      taker.take(readings);
      lock.lock();
      if (shared->readings.size() < kMaxReadings)
        std::move(readings.begin(), readings.end(), std::back_inserter(shared->readings));
      readings.clear();
      shared->changed.wait_until(lock, taker.next(), [&] { return shared->stop; });
    }
  } catch (const std::exception&) {  // out of memory: no more samples, the recorder may go on
  }
  const std::lock_guard lock(shared->mutex);
  shared->ended = true;
  shared->changed.notify_all();
}

std::vector<Reading> Sampler::collect() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->readings, {});
}

}  // namespace tidemark
