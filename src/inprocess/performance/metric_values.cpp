#include "inprocess/performance/metric_values.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <new>

namespace tidemark {
namespace {

// Numbers the logging threads: consecutive threads have different shards.
std::size_t thread_number() {
  static std::atomic<std::size_t> next = 0;
  static thread_local const std::size_t own = next.fetch_add(1, std::memory_order_relaxed);
  return own;
}

}  // namespace

/// Exclusive use of a shard by this thread.
class MetricValues::Use {
 public:
  explicit Use(Shard& shard) : shard_(shard) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { shard_.busy.store(false, std::memory_order_release); }

  static bool take(Shard& shard) {
    return !shard.busy.load(std::memory_order_relaxed) && !shard.busy.exchange(true, std::memory_order_acquire);
  }
  static bool wait_for(Shard& shard, bool patient) {
    while (!take(shard)) {
      if (!patient) return false;
      ::sched_yield();
    }
    return true;
  }

 private:
  Shard& shard_;
};

MetricValues::~MetricValues() {
  for (const std::atomic<Shard*>& shard : shards_) delete shard.load();
}

MetricValues::Shard* MetricValues::shard(std::size_t number) noexcept {
  Shard* found = shards_[number].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  auto* const made = new (std::nothrow) Shard;
  if (made == nullptr) return nullptr;
  if (shards_[number].compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  delete made;
  return found;
}

void MetricValues::add(double value) noexcept {
  last_.store(value, std::memory_order_relaxed);
  const std::size_t own = thread_number();
  for (std::size_t tried = 0;; ++tried) {
    Shard* const chosen = shard((own + tried) % kShards);
    if (chosen == nullptr) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (!Use::take(*chosen)) {
      // There are more threads than shards: one is free again in some nanoseconds.
      if (tried % kShards == kShards - 1) ::sched_yield();
      continue;
    }
    const Use use(*chosen);
    if (std::isnan(value)) {
      ++chosen->nan_count;
    } else if (std::isinf(value)) {
      ++chosen->infinite_count;
    } else {
      try {
        chosen->sketch.add(value);  // may need memory: first, so that the counts stay consistent on failure
      } catch (const std::bad_alloc&) {
        lost_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      chosen->all.add(value);
      chosen->recent.add(value);
    }
    return;
  }
}

ValueSummary MetricValues::summary(bool patient) const {
  ValueSummary summary;
  QuantileSketch sketch;
  for (const std::atomic<Shard*>& place : shards_) {
    Shard* const shard = place.load(std::memory_order_acquire);
    if (shard == nullptr || !Use::wait_for(*shard, patient)) continue;
    const Use use(*shard);
    summary.moments.merge(shard->all);
    sketch.merge(shard->sketch);
    summary.nan_count += shard->nan_count;
    summary.infinite_count += shard->infinite_count;
  }
  summary.lost_count = lost_.load(std::memory_order_relaxed);
  summary.joined = sketch.joined();
  if (summary.moments.count + summary.nan_count + summary.infinite_count > 0) summary.last = last_.load();
  if (summary.moments.count == 0) return summary;
  // The extremes are exact.
  const auto quantile = [&](double share) {
    return std::clamp(*sketch.quantile(share), summary.moments.lowest, summary.moments.highest);
  };
  summary.p50 = quantile(0.5);
  summary.p90 = quantile(0.9);
  summary.p99 = quantile(0.99);
  return summary;
}

RunningMoments MetricValues::take_recent() {
  RunningMoments recent;
  for (const std::atomic<Shard*>& place : shards_) {
    Shard* const shard = place.load(std::memory_order_acquire);
    if (shard == nullptr) continue;
    Use::wait_for(*shard, true);
    const Use use(*shard);
    recent.merge(shard->recent);
    shard->recent = RunningMoments();
  }
  return recent;
}

}  // namespace tidemark
