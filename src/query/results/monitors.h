// Descriptions shared by reports of monitors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "monitor/watch_reports.h"
#include "query/results/common.h"
#include "query/results/ledgers.h"
#include "query/words/monitors.h"
#include "query/words/risks.h"

namespace tidemark {

/// The module of Python that would have these types.
inline constexpr std::string_view kMonitorTypes = "monitors";

/// "2026-11-23T10:02:11.123456+00:00".
[[nodiscard]] std::string iso_time(std::uint64_t wall_ns);

[[nodiscard]] inline double in_seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}
[[nodiscard]] inline double in_mib(double bytes) {
  return bytes / static_cast<double>(kMiB);
}
[[nodiscard]] inline std::optional<std::uint64_t> peak_of(const WatchedUsage& used) {
  return used.empty() ? std::nullopt : std::optional(used.peak_bytes());
}
using PeakIs = OneOf<"sampled", "recorded">;
[[nodiscard]] inline std::optional<PeakIs> peak_is(const WatchedUsage& used) {
  return used.empty() ? std::nullopt : std::optional(PeakIs{used.peak_is_sampled() ? "sampled" : "recorded"});
}

// Tags for several descriptions of one type.
struct DeviceIdentity {};
struct MemoryNow {};

template <typename Visitor>
void describe(Visitor& v, const Interval& interval) {
  v.type("ForecastInterval", "When something is reached: expected, and a 90% interval.", kMonitorTypes);
  v.field("expected", interval.expected);
  v.field("earliest", interval.earliest);
  v.field("latest", interval.latest, "null: perhaps never");
}

template <typename Visitor>
void describe(Visitor& v, const RiskAssessment& risk) {
  v.type("RiskEvidence", "What an assessment follows from.", kMonitorTypes);
  v.field("sample_count", risk.sample_count, "since the latest change");
  v.field("span_seconds", risk.span_seconds, "of these");
  v.field("change_points", risk.change_points, "that were found before");
  v.field("period_seconds", risk.period_seconds, "of what repeats");
}

/// A risk with its explanation. Without samples it is not assessed: everything else is null.
struct AssessedRisk {
  const RiskAssessment* risk = nullptr;
  std::function<std::string()> recommendation;
  bool assessed = true;
};
template <typename Visitor>
void describe(Visitor& v, const AssessedRisk& of) {
  const RiskAssessment& risk = value_or_none(of.risk);
  const bool known = of.assessed;
  const bool growth_known = known && risk.pattern != UsagePattern::unknown;
  v.type("RiskAssessment",
         "Whether a memory will run out, and when; all but the recommendation is null without samples.", kMonitorTypes);
  v.field("risk_level", when(known, named<kRiskLevelNames>(risk.level)));
  v.field("confidence", known ? risk.confidence : std::nullopt,
          "how often such assessments were right on labelled runs; null: too little to judge from");
  v.field("current_usage_percent", known ? risk.used_percent : std::nullopt, "of the limit");
  v.field("growth_rate_mb_per_sec", when(growth_known, in_mib(risk.growth_bytes_per_second)), "of the running peak");
  v.field("predicted_oom_time_seconds",
          when(known && risk.seconds_to_limit, [&] { return risk.seconds_to_limit->expected; }),
          "null: the limit is not reached");
  v.field(
      "recommendation", [&] { return of.recommendation(); }, "what to do, and the evidence that says so");
  v.field("pattern", when(known, named<kUsagePatternNames>(risk.pattern)));
  v.field("growth_error_mb_per_sec", when(growth_known, in_mib(risk.growth_error_bytes_per_second)),
          "half of the 90% interval");
  v.field("seconds_to_limit", known ? risk.seconds_to_limit : std::nullopt, "null: it is not reached");
  v.field("steps_to_limit", known ? risk.steps_to_limit : std::nullopt, "null also where steps are not known");
  v.field("evidence", known ? &risk : nullptr);
}

template <typename Visitor>
void describe(Visitor& v, const WatchedDevice& device, const DeviceIdentity& /*tag*/) {
  v.field("name", known_text(device.info.name));
  v.field("vendor", known_text(device.info.vendor));
  v.field("uuid", known_text(device.info.uuid));
  v.field("bus_id", known_text(device.info.bus_id));
  v.field("lost", known_text(device.lost), "why nothing more comes of it");
}

template <typename Visitor>
void describe(Visitor& v, const WatchedDevice& device, const MemoryNow& /*tag*/) {
  const auto used = device.used_bytes();
  const auto total = device.info.total_bytes;
  v.type("CurrentMemory", "A device's memory now, in bytes.", kMonitorTypes);
  v.field("allocated", used, "used, by the driver");
  v.field("free", device.free_bytes());
  v.field("total", total);
  v.field("utilization",
          when(used && total.value_or(0) > 0,
               [&] { return static_cast<double>(*used) / static_cast<double>(*total) * 100; }),
          "percent of the total");
}

template <typename Visitor>
void describe(Visitor& v, const RunningValue& value) {
  v.type("AverageAndMaximum", "Of a number that was read again and again.", kMonitorTypes);
  v.field("avg", value.mean());
  v.field("max", value.most());
}

template <typename Visitor>
void describe(Visitor& v, const WatchedUsage& used) {
  std::vector<double> times;
  std::vector<std::uint64_t> last;
  std::vector<std::uint64_t> low;
  std::vector<std::uint64_t> high;
  for (const WatchedUsagePoint& point : used.points()) {
    times.push_back(in_seconds(point.end_ns));
    last.push_back(point.last_bytes);
    low.push_back(point.low_bytes);
    high.push_back(point.high_bytes);
  }
  v.type("UsageHistory", "What was used over time: arrays of one length.", kMonitorTypes);
  v.field("time_seconds", times, "when a stretch of samples ends");
  v.field("used_bytes", last, "then");
  v.field("low_bytes", low, "the least in the stretch");
  v.field("peak_bytes", high, "the most");
}

/// Memory of one process on a device; `device` null: on the host.
struct ProcessRiskOf {
  const WatchedProcess* process = nullptr;
  const WatchedDevice* device = nullptr;
  const ProcessRisk* risk = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const ProcessRiskOf& of) {
  const ProcessRisk& risk = value_or_none(of.risk);
  v.type("ProcessRisk", "Whether a process will run out of memory, as long as others take no more.", kMonitorTypes);
  v.part(AssessedRisk{&risk.risk, [&] { return process_recommendation_text(*of.process, of.device, risk); }});
  v.field("limit_bytes", risk.limit_bytes, "what it has, and what is free");
}
[[nodiscard]] inline std::optional<ProcessRiskOf> risk_of(const WatchedProcess& process, const WatchedDevice* device,
                                                          const std::optional<ProcessRisk>& risk) {
  return risk ? std::optional(ProcessRiskOf{&process, device, &*risk}) : std::nullopt;
}

/// A device used by a process.
struct OnDevice {
  const WatchedProcess* process = nullptr;
  const ProcessOnDevice* on = nullptr;
  const WatchedDevice* device = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const OnDevice& of) {
  const ProcessOnDevice& on = value_or_none(of.on);
  v.type("ProcessOnDevice", "What a process has of a device.", kMonitorTypes);
  v.field("bytes", on.held ? on.bytes : std::nullopt, "null: it is not on it now, or the driver does not say");
  v.field("peak_bytes", peak_of(on.used));
  v.field("risk_assessment", risk_of(value_or_none(of.process), of.device, on.risk), "null: not assessed");
}

template <typename Visitor>
void describe(Visitor& v, const WatchedProcess& process, const MachineState& state) {
  Keyed<OnDevice> devices;
  for (const ProcessOnDevice& on : process.devices) {
    const WatchedDevice& device = state.devices[on.device];
    devices.emplace_back(device.key, OnDevice{&process, &on, &device});
  }
  const bool known = process.on_host.has_value();
  const HostProcess& seen = value_or_none(known ? &*process.on_host : nullptr);
  v.type("WatchedProcess", "A process that was on a device, or was watched; those that have ended too.", kMonitorTypes);
  v.field("pid", process.pid, "as the driver numbers it");
  v.field("name", known_text(process.name));
  v.field("kind", named<kProcessKindNames>(process.kind));
  v.field("ended", process.ended);
  v.field("first_seen_seconds", in_seconds(process.first_seen_ns));
  v.field("last_seen_seconds", in_seconds(process.last_seen_ns));
  v.field("devices", devices, "by the devices' keys");
  v.field("rss_bytes", process.rss_bytes);
  v.field("peak_rss_bytes", peak_of(process.rss));
  v.field("pss_bytes", process.pss_bytes);
  v.field("peak_pss_bytes", peak_of(process.pss));
  v.field("risk_assessment", risk_of(process, nullptr, process.risk), "of its memory on the host; null: not assessed");
  v.field("role", when(known, named<kProcessRoleNames>(seen.role)));
  v.field("number", seen.number, "of a rank or DataLoader worker");
  v.field("count", seen.count, "of these");
  v.field("parent_pid", when(seen.parent_pid >= 0, seen.parent_pid));
  v.field("anon_bytes", seen.pages.anon_bytes);
  v.field("file_bytes", seen.pages.file_bytes);
  v.field("shmem_bytes", seen.pages.shmem_bytes);
  v.field("swap_bytes", seen.pages.swap_bytes);
  v.field("locked_bytes", seen.pages.locked_bytes);
  v.field("pinned_bytes", seen.pages.pinned_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const RecordedDevice& on) {
  v.type("RecordedDevice", "What the allocator of a recorded process has of a device.", kMonitorTypes);
  v.field("device", known_text(on.key), "its key in `devices`; null where it cannot be told");
  v.field("allocated_bytes", on.allocated_bytes);
  v.field("reserved_bytes", on.reserved_bytes, "null on the CPU");
  v.field("peak_allocated_bytes", on.most_allocated(), "since watching began, as all that follow");
  v.field("peak_reserved_bytes", on.most_reserved());
  v.field("avg_unused_share", on.unused_share.mean(), "1 - allocated / reserved");
  v.field("max_unused_share", on.unused_share.most());
  v.field("num_snapshots", on.allocated.sample_count());
}

struct KilledThen {};
template <typename Visitor>
void describe(Visitor& v, const KilledProcess& killed, const KilledThen& /*tag*/) {
  v.type("WatchedKill", "A process of the job that the kernel's OOM killer ended.", kMonitorTypes);
  v.part(killed);
}

/// A recorded process; a description without a name, for objects with more fields.
template <typename Visitor>
void describe_recorded(Visitor& v, const RecordedProcess& process) {
  Keyed<RecordedDevice> devices;
  for (const RecordedDevice& on : process.devices) devices.emplace_back(to_string(on.device), on);
  v.field("pid", process.recording.pid);
  v.field("command", process.recording.command, "without other arguments");
  v.field("rank", process.recording.rank);
  v.field("file", process.recording.path);
  v.field("state", named<kFollowStateNames>(process.state));
  v.field("problem", known_text(process.problem), "why it is not read any further");
  v.field("steps", process.steps, "of training that were seen; null: not known");
  v.field("cuda_pinned_bytes", process.cuda_pinned_bytes, "of the host's memory; null: none was recorded");
  v.field("killed", in(process.killed, KilledThen()), "of its job, for lack of host memory");
  v.field("devices", devices, "by PyTorch's names");
  const bool lags = process.lag.is_known();
  v.field_if(lags, "behind_seconds", process.lag.behind_seconds,
             "of the program's time, that its events are read late");
  v.field_if(lags, "behind_bytes", process.lag.behind_bytes, "of the file");
  v.field_if(lags, "skipped_events", process.lag.skipped_events, "that were never read");
  v.field_if(lags, "skipped_until_ns", process.lag.skipped_until_ns, "up to when they are missing");
}
template <typename Visitor>
void describe(Visitor& v, const RecordedProcess& process) {
  v.type("RecordedProcess", "A process that was being recorded.", kMonitorTypes);
  describe_recorded(v, process);
}

/// Without a name, for objects with more fields.
template <typename Visitor>
void describe_host(Visitor& v, const WatchedHost& host) {
  const MemoryParts& parts = host.parts();
  v.field("total_bytes", host.memory.total_bytes);
  v.field("available_bytes", host.memory.available_bytes, "without swapping");
  v.field("limit_bytes", host.limit_bytes());
  v.field("limited_by", when(host.limit_bytes().has_value(),
                             one_of<"cgroup", "machine">(host.limited_by_cgroup() ? "cgroup" : "machine")));
  v.field("used_bytes", host.used_bytes(), "that counts against the limit");
  v.field("peak_bytes", peak_of(host.used));
  v.field("anon_bytes", parts.anon_bytes);
  v.field("cache_bytes", parts.cache_bytes);
  v.field("shmem_bytes", parts.shmem_bytes);
  v.field("kernel_bytes", parts.kernel_bytes);
  v.field("socket_bytes", parts.socket_bytes);
  v.field("swap_bytes", parts.swap_bytes);
  v.field("cgroup_pid", host.cgroup_pid, "the process whose control group it is; null: that of who watches");
  v.field("cgroup_folder", known_text(host.cgroup_folder));
  v.field("cgroup_usage_bytes", host.cgroup_usage_bytes, "with cached files");
  v.field("cgroup_inactive_file_bytes", host.cgroup_inactive_file_bytes, "of that");
  v.field("cgroup_oom_kills", host.cgroup_oom_kills, "since the group exists");
  v.field("cgroup_oom_kills_at_start", host.cgroup_oom_kills_at_start);
}
template <typename Visitor>
void describe(Visitor& v, const WatchedHost& host) {
  v.type("WatchedHost", "The host's memory, and that of its control group.", kMonitorTypes);
  describe_host(v, host);
}

}  // namespace tidemark
