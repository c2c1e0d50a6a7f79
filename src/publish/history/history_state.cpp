#include "publish/history/history_state.h"

#include <algorithm>
#include <limits>

#include "base/saturating.h"
#include "monitor/device_keys.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kNsInOneMs = 1'000'000;

}  // namespace

MachineState as_state(const History& history) {
  std::int64_t begin_ms = std::numeric_limits<std::int64_t>::max();
  for (const HistoryDevice& device : history.devices) begin_ms = std::min(begin_ms, device.first_ms);
  MachineState state;
  state.devices_known = true;
  for (const HistoryDevice& past : history.devices) {
    WatchedDevice& device = state.devices.emplace_back();
    device.key = past.key;
    device.is_host = past.id == "host";
    device.info.name = past.name;
    device.info.uuid = past.id;
    device.info.total_bytes = past.limit_bytes;
    set_numbers(device.info, past.key);
    for (const HistoryPoint& point : past.points) {
      // Its highest moment, where that is known: points of a long time are of many minutes.
      const bool has_peak = past.peak_ms > point.time_ms && past.peak_ms < saturating_add(point.time_ms, point.span_ms);
      const std::int64_t since_ms = saturating_add(has_peak ? past.peak_ms : point.time_ms, -begin_ms);
      constexpr std::int64_t kMaxMs = std::numeric_limits<std::int64_t>::max() / 2'000'000;
      const auto time_ns = static_cast<std::uint64_t>(std::clamp<std::int64_t>(since_ms, 0, kMaxMs)) * kNsInOneMs;
      device.used.add(time_ns, point.mean_bytes, point.high_bytes);
      state.now_ns = std::max(state.now_ns, time_ns);
    }
  }
  if (!history.devices.empty()) {
    state.began_wall_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(begin_ms, 0)) * kNsInOneMs;
  }
  state.now_wall_ns = saturating_add(state.began_wall_ns, state.now_ns);
  return state;
}

}  // namespace tidemark
