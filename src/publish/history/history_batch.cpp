#include "publish/history/history_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "monitor/device_keys.h"
#include "publish/device_id.h"

namespace tidemark {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

std::int64_t as_integer(std::uint64_t value) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  return value > static_cast<std::uint64_t>(kMax) ? kMax : static_cast<std::int64_t>(value);
}

}  // namespace

void HistoryCollector::add(const MachineState& state) {
  const auto wall_ms = [&](std::uint64_t ns) { return as_integer(state.wall_ns(ns)) / kNsPerMs; };
  const auto add_usage = [&](const HistoryKey& key, const WatchedUsage& used,
                             const std::optional<std::uint64_t>& limit) {
    Seen& seen = seen_[key];
    if (used.sample_count() < seen.samples) seen = {};  // another process of that PID
    seen.look = looks_;
    std::uint64_t number = used.sample_count() - used.newest().size();
    for (const WatchedSample& sample : used.newest()) {
      if (++number < seen.samples) continue;
      if (number > seen.samples) {
        add(key, wall_ms(sample.time_ns), sample, limit);
      } else if (sample.high_bytes > seen.high) {
        raise(key, wall_ms(sample.time_ns), sample, limit);
      }
      seen.samples = number;
      seen.high = sample.high_bytes;
    }
  };
  ++looks_;
  const HistoryKey host{"host", kHostKey, "", 0, ""};
  for (const WatchedDevice& device : state.devices) {
    if (device.is_host) continue;  // below, as on other machines
    add_usage({device_id(device), device.key, device.info.name, 0, ""}, device.used, device.limit_bytes());
  }
  add_usage(host, state.host.used, state.host.limit_bytes());
  for (const WatchedProcess& process : state.processes) {
    if (process.ended) continue;
    for (const ProcessOnDevice& part : process.devices) {
      const WatchedDevice& device = state.devices.at(part.device);
      if (!part.held || device.is_host) continue;
      add_usage({device_id(device), device.key, device.info.name, process.pid, process.name}, part.used, std::nullopt);
    }
    HistoryKey resident = host;
    resident.pid = process.pid;
    resident.process = process.name;
    add_usage(resident, process.rss, std::nullopt);
  }
}

void HistoryCollector::add(const HistoryKey& key, std::int64_t time_ms, const WatchedSample& sample,
                           const std::optional<std::uint64_t>& limit) {
  const std::int64_t begin = time_ms - time_ms % kSpanMs;
  Sum& sum = open_.try_emplace(key, Sum{.time_ms = begin}).first->second;
  if (sum.time_ms != begin) {
    close(key, sum);
    sum = Sum{.time_ms = begin};
  }
  sum.high = std::max(sum.high, sample.high_bytes);
  sum.sum += static_cast<double>(sample.bytes);
  ++sum.count;
  sum.limit = limit;
}

// Recorders told later how high it was after a sample that has been taken; its row may have been handed on, and gets no
// more of a second one than what is higher.
void HistoryCollector::raise(const HistoryKey& key, std::int64_t time_ms, const WatchedSample& sample,
                             const std::optional<std::uint64_t>& limit) {
  Sum raised{.time_ms = time_ms - time_ms % kSpanMs,
             .high = sample.high_bytes,
             .sum = static_cast<double>(sample.bytes),
             .count = 1,
             .limit = limit};
  const auto open = open_.find(key);
  if (open == open_.end() || open->second.time_ms != raised.time_ms) return close(key, raised);
  open->second.high = std::max(open->second.high, raised.high);
}

void HistoryCollector::close(const HistoryKey& key, const Sum& sum) {
  const double mean = sum.sum / static_cast<double>(sum.count);
  done_.push_back({key, sum.time_ms, kSpanMs, as_integer(sum.high), static_cast<std::int64_t>(mean), sum.count,
                   sum.limit ? std::optional(as_integer(*sum.limit)) : std::nullopt});
}

std::vector<HistoryRow> HistoryCollector::take(std::int64_t before_ms) {
  std::erase_if(open_, [&](const auto& one) {
    const bool complete = one.second.time_ms + kSpanMs <= before_ms;
    if (complete) close(one.first, one.second);
    return complete;
  });
  constexpr std::size_t kMaxKeys = 4096;
  if (seen_.size() > kMaxKeys) {  // processes come and go
    std::erase_if(seen_, [this](const auto& one) { return one.second.look != looks_; });
  }
  return std::exchange(done_, {});
}

}  // namespace tidemark
