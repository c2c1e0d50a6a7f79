#include <chrono>
#include <cmath>
#include <optional>
#include <string>

#include "inprocess/performance/performance_report.h"
#include "query/results/machine_results.h"
#include "query/results/monitors.h"

namespace tidemark {
namespace {

// JSON has no infinite numbers, such as the spread of values near the largest double.
std::optional<double> finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> if_any(const ValueSummary& values, double value) {
  return values.moments.count == 0 ? std::nullopt : std::optional(value);
}

std::optional<double> per_second(std::uint64_t count, double seconds) {
  return count > 0 && seconds > 0 ? std::optional(static_cast<double>(count) / seconds) : std::nullopt;
}

template <typename Visitor>
void describe_values(Visitor& v, const ValueSummary& values) {
  const RunningMoments& moments = values.moments;
  v.field("mean", finite(if_any(values, moments.mean)));
  v.field("max", finite(if_any(values, moments.highest)));
  v.field("min", finite(if_any(values, moments.lowest)));
  v.field("std", finite(moments.deviation()));
  v.field("p50", finite(values.p50));
  v.field("p90", finite(values.p90));
  v.field("p99", finite(values.p99));
  v.field("last", finite(values.last));
  v.field("count", moments.count);
  v.field("nan_count", values.nan_count);
  v.field("infinite_count", values.infinite_count);
  v.field("lost_count", values.lost_count, "for lack of memory");
  v.field("quantile_relative_error", when(!values.joined, QuantileSketch::kRelativeError), "null: not known");
}

// A part of steps; `all_seconds`: that the steps took.
struct StepPartValues {
  const ValueSummary* values = nullptr;
  double all_seconds = 0;
};

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const ValueSummary& values) {
  v.type("ValueSummary", "Numbers that were logged.");
  describe_values(v, values);
}

namespace {

template <typename Visitor>
void describe(Visitor& v, const StepPartValues& of) {
  const ValueSummary& values = value_or_none(of.values);
  const double total = values.moments.sum();
  v.type("StepPart", "Seconds of a part of training steps.");
  describe_values(v, values);
  v.field("total_seconds", if_any(values, total));
  v.field("share_of_step_time",
          when(values.moments.count > 0 && of.all_seconds > 0, [&] { return total / of.all_seconds; }));
}

// Time of the steps outside all parts. Unknown if nothing was measured, or parts overlap.
std::optional<double> unmeasured_seconds(const StepSummary& steps, double all_seconds) {
  double measured = 0;
  std::uint64_t count = 0;
  for (const ValueSummary& part : steps.parts) {
    measured += part.moments.sum();
    count += part.moments.count;
  }
  return count > 0 && measured <= all_seconds ? std::optional(all_seconds - measured) : std::nullopt;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const StepSummary& steps) {
  const ValueSummary& seconds = steps.step_seconds;
  const double all = seconds.moments.sum();
  const bool waits_known = steps.parts[static_cast<std::size_t>(StepPart::data)].moments.count > 0;
  Keyed<StepPartValues> breakdown;
  for (std::size_t part = 0; part < kStepParts; ++part) {
    breakdown.emplace_back(name_of(static_cast<StepPart>(part)), StepPartValues{&steps.parts[part], all});
  }
  v.type("StepSummary", "Times of training steps.");
  v.field("steps", steps.steps, "that ended");
  v.field("samples", steps.samples);
  v.field("steps_per_second", finite(per_second(seconds.moments.count, all)));
  v.field("samples_per_second", finite(per_second(steps.timed_samples, steps.timed_sample_seconds)));
  v.field("step_seconds", seconds);
  v.field("breakdown", breakdown, "by part");
  v.field("unmeasured_seconds", unmeasured_seconds(steps, all),
          "in no part; null: nothing was measured, or parts overlap");
  v.field("stalled_steps", when(waits_known, steps.stalled_steps), "that waited for data");
  v.field("stalled_seconds", when(waits_known, steps.stalled_seconds));
  v.field("stalled_above_share", kStalledShare);
}

namespace {

struct TrainingDevice {
  const WatchedDevice* device = nullptr;
  const MachineState* state = nullptr;
  std::int64_t pid = -1;
};

std::optional<std::uint64_t> own_bytes(const TrainingDevice& of) {
  std::optional<std::uint64_t> own;
  for (const WatchedProcess& process : of.state->processes) {
    if (process.pid != of.pid) continue;
    for (const ProcessOnDevice& on : process.devices) {
      if (on.held && &of.state->devices[on.device] == of.device) own = on.bytes;
    }
  }
  return own;
}

template <typename Visitor>
void describe(Visitor& v, const TrainingDevice& of) {
  const WatchedDevice& device = value_or_none(of.device);
  const auto used = device.used_bytes();
  const auto total = device.info.total_bytes;
  v.type("TrainingDevice", "A GPU while the program trained.");
  v.field("memory_used_bytes", used);
  v.field("memory_free_bytes", device.free_bytes());
  v.field("memory_total_bytes", total);
  v.field("memory_usage",
          when(used && total.value_or(0) > 0,
               [&] { return static_cast<double>(*used) / static_cast<double>(*total) * 100; }),
          "percent");
  v.field("memory_peak_bytes", peak_of(device.used));
  v.field(
      "process_memory_bytes", [&] { return own_bytes(of); }, "of this process");
  v.field("utilization", device.latest.utilization_percent);
  v.field("memory_usage_percent", device.used_percent);
  v.field("utilization_percent", device.utilization_percent);
  v.field("temperature_celsius", device.latest.temperature_celsius);
  v.field("power_milliwatts", device.latest.power_milliwatts);
  v.part(in(device, DeviceIdentity()));
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const WatchedPercent& percent) {
  v.type("WatchedPercent", "A share that was read again and again.");
  v.field("avg", percent.all.mean());
  v.field("max", percent.all.most());
  v.field("latest", percent.latest);
}

namespace {

struct OfProcess {};
struct OfDisk {};
struct OfNetwork {};

std::optional<std::uint64_t> increase(const std::optional<std::uint64_t>& before,
                                      const std::optional<std::uint64_t>& now) {
  return before && now && *now >= *before ? std::optional(*now - *before) : std::nullopt;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const PerformanceReport& report, const OfProcess& /*tag*/) {
  const ProcessPages& process = report.system.process;
  v.type("TrainingProcess", "Memory of this process on the host.");
  v.field("pid", report.pid);
  v.field("rss_bytes", process.rss_bytes);
  v.field("anon_bytes", process.anon_bytes);
  v.field("shmem_bytes", process.shmem_bytes);
  v.field("swap_bytes", process.swap_bytes);
  v.field("locked_bytes", process.locked_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const SystemReport& system, const OfDisk& /*tag*/) {
  v.type("TrainingDisk", "The disk.");
  v.field("path", system.disk, "on it");
  v.field("total_bytes", system.latest.disk_total_bytes);
  v.field("used_bytes", system.latest.disk_used_bytes);
  v.field("available_bytes", system.latest.disk_available_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const SystemReport& system, const OfNetwork& /*tag*/) {
  const double seconds = std::chrono::duration<double>(system.latest.at - system.first.at).count();
  const auto received = increase(system.first.received_bytes, system.latest.received_bytes);
  const auto sent = increase(system.first.sent_bytes, system.latest.sent_bytes);
  const auto rate = [&](const std::optional<std::uint64_t>& bytes) {
    return when(bytes && seconds > 0, [&] { return static_cast<double>(*bytes) / seconds; });
  };
  v.type("TrainingNetwork", "What the machine received and sent since watching began.");
  v.field("received_bytes", received);
  v.field("sent_bytes", sent);
  v.field("received_bytes_per_second", rate(received));
  v.field("sent_bytes_per_second", rate(sent));
}

template <typename Visitor>
void describe(Visitor& v, const SystemReport& system, const PerformanceReport& report) {
  v.type("TrainingSystem", "The machine while the program trained.");
  v.field("cpu_usage", system.cpu.latest, "percent, as the next two");
  v.field("memory_usage", system.memory.latest);
  v.field("disk_usage", system.disk_percent);
  v.field("cpu_percent", system.cpu, "of all processors");
  v.field("process_cpu_percent", system.process_cpu, "of one: 200 where this process keeps two busy");
  v.field("processors", when(system.processors > 0, system.processors), "that this process may use");
  v.field("memory_percent", system.memory);
  v.field("process", in(report, OfProcess()));
  v.field("disk", in(system, OfDisk()));
  v.field("network", in(system, OfNetwork()));
  v.field("memory", report.machine ? &report.machine->host : nullptr, "null: the machine was not watched");
}

template <typename Visitor>
void describe(Visitor& v, const PerformanceReport& report) {
  Keyed<TrainingDevice> devices;
  std::vector<std::string> problems;
  if (report.machine) {
    const MachineState& state = *report.machine;
    for (const WatchedDevice& device : state.devices) {
      if (!device.is_host) devices.emplace_back(device.key, TrainingDevice{&device, &state, report.pid});
    }
    problems = state.problems;
    for (const std::string& key : state.missing_keys) {
      problems.push_back("there is no device " + key + " here; `tidemark devices` lists them");
    }
  }
  Keyed<ValueSummary> metrics;
  for (const MetricReport& metric : report.metrics) metrics.emplace_back(metric.name, metric.values);
  v.type("Performance", "How a program trained: metrics, steps, devices and the machine.");
  v.field("timestamp", iso_time(report.now_wall_ns), "UTC");
  v.field("started", iso_time(report.now_wall_ns - report.now_ns));
  v.field("duration_seconds", in_seconds(report.now_ns));
  v.field("monitoring", report.watching, "still");
  v.field("gpu_metrics", devices, "by key");
  v.field("training_metrics", metrics, "by name, in the order in which they were first logged");
  v.field("system_metrics", in(report.system, report));
  v.field("steps", report.steps);
  v.field("values_of_further_names", report.unnamed_values);
  v.field("values_after_stop", report.late_values);
  v.field("problems", problems);
}
TIDEMARK_DESCRIBED(PerformanceReport);

}  // namespace tidemark
