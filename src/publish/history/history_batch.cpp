#include "publish/history/history_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "live/device_keys.h"
#include "publish/device_id.h"

namespace tidemark {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

std::int64_t as_integer(std::uint64_t value) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return value > static_cast<std::uint64_t>(kMost) ? kMost : static_cast<std::int64_t>(value);
}

}  // namespace

void HistoryCollector::add(const MachineState& state) {
  const auto wall_ms = [&](std::uint64_t ns) { return as_integer(state.wall_ns(ns)) / kNsPerMs; };
  const auto add_usage = [&](const HistoryKey& key, const WatchedUsage& used,
                             const std::optional<std::uint64_t>& limit) {
    if (used.empty()) return;
    const WatchedUsagePoint& last = used.last_sample();
    add(key, used.sample_count(), wall_ms(last.end_ns), last.last_bytes,
        std::max(last.high_bytes, used.late_peak_bytes()), limit);
  };
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

void HistoryCollector::add(const HistoryKey& key, std::uint64_t samples, std::int64_t time_ms, std::uint64_t bytes,
                           std::uint64_t high, const std::optional<std::uint64_t>& limit) {
  std::uint64_t& seen = seen_[key];
  if (std::exchange(seen, samples) == samples) return;
  const std::int64_t begin = time_ms - time_ms % kSpanMs;
  Sum& sum = open_.try_emplace(key, Sum{.time_ms = begin}).first->second;
  if (sum.time_ms != begin) {
    close(key, sum);
    sum = Sum{.time_ms = begin};
  }
  sum.high = std::max({sum.high, bytes, high});
  sum.sum += static_cast<double>(bytes);
  ++sum.count;
  sum.limit = limit;
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
  constexpr std::size_t kMostKeys = 4096;
  if (seen_.size() > kMostKeys) seen_.clear();  // processes come and go
  return std::exchange(done_, {});
}

}  // namespace tidemark
