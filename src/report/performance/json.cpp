#include "report/performance/json.h"

#include <algorithm>
#include <cmath>

#include "report/common/json_parts.h"
#include "report/monitor/json_parts.h"

namespace tidemark {
namespace {

/// JSON has no number for what is not finite, such as the spread of values near the largest double.
Json finite_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::optional<double> if_any(const ValueSummary& values, double value) {
  return values.moments.count == 0 ? std::nullopt : std::optional(value);
}

Json summary_json(const ValueSummary& values) {
  const RunningMoments& moments = values.moments;
  return {{"mean", finite_or_null(if_any(values, moments.mean))},
          {"max", finite_or_null(if_any(values, moments.highest))},
          {"min", finite_or_null(if_any(values, moments.lowest))},
          {"std", finite_or_null(moments.deviation())},
          {"p50", finite_or_null(values.p50)},
          {"p90", finite_or_null(values.p90)},
          {"p99", finite_or_null(values.p99)},
          {"last", finite_or_null(values.last)},
          {"count", moments.count},
          {"nan_count", values.nan_count},
          {"infinite_count", values.infinite_count},
          {"lost_count", values.lost_count},
          {"quantile_relative_error", values.joined ? Json(nullptr) : Json(QuantileSketch::kRelativeError)}};
}

std::optional<double> per_second(std::uint64_t count, double seconds) {
  return count > 0 && seconds > 0 ? std::optional(static_cast<double>(count) / seconds) : std::nullopt;
}

Json part_json(const ValueSummary& part, double all_seconds) {
  Json object = summary_json(part);
  const double total = part.moments.sum();
  object["total_seconds"] = if_any(part, total) ? Json(total) : Json(nullptr);
  object["share_of_step_time"] = part.moments.count > 0 && all_seconds > 0 ? Json(total / all_seconds) : Json(nullptr);
  return object;
}

// What of the steps was in no part. Unknown where nothing was measured, or parts overlap.
Json unmeasured_json(const StepSummary& steps, double all_seconds) {
  double measured = 0;
  std::uint64_t count = 0;
  for (const ValueSummary& part : steps.parts) {
    measured += part.moments.sum();
    count += part.moments.count;
  }
  return count > 0 && measured <= all_seconds ? Json(all_seconds - measured) : Json(nullptr);
}

Json steps_json(const StepSummary& steps) {
  const ValueSummary& seconds = steps.step_seconds;
  const double all = seconds.moments.sum();
  Json object = {{"steps", steps.steps},
                 {"samples", steps.samples},
                 {"steps_per_second", finite_or_null(per_second(seconds.moments.count, all))},
                 {"samples_per_second", finite_or_null(per_second(steps.timed_samples, steps.timed_sample_seconds))},
                 {"step_seconds", summary_json(seconds)},
                 {"breakdown", Json::object()}};
  for (std::size_t part = 0; part < kStepParts; ++part) {
    object["breakdown"][std::string(name_of(static_cast<StepPart>(part)))] = part_json(steps.parts[part], all);
  }
  const bool waits_known = steps.parts[static_cast<std::size_t>(StepPart::data)].moments.count > 0;
  object["unmeasured_seconds"] = unmeasured_json(steps, all);
  object["stalled_steps"] = waits_known ? Json(steps.stalled_steps) : Json(nullptr);
  object["stalled_seconds"] = waits_known ? Json(steps.stalled_seconds) : Json(nullptr);
  object["stalled_above_share"] = kStalledShare;
  return object;
}

Json running_json(const RunningValue& value) {
  return {{"avg", nullable(value.mean())}, {"max", nullable(value.most())}};
}

Json device_json(const WatchedDevice& device, const MachineState& state, std::int64_t pid) {
  std::optional<std::uint64_t> own;
  for (const WatchedProcess& process : state.processes) {
    if (process.pid != pid) continue;
    for (const ProcessOnDevice& on : process.devices) {
      if (on.held && &state.devices[on.device] == &device) own = on.bytes;
    }
  }
  const Json memory = current_memory_json(device);
  Json object = {{"memory_used_bytes", memory["allocated"]},
                 {"memory_free_bytes", memory["free"]},
                 {"memory_total_bytes", memory["total"]},
                 {"memory_usage", memory["utilization"]},
                 {"memory_peak_bytes", device.used.empty() ? Json(nullptr) : Json(device.used.peak_bytes())},
                 {"process_memory_bytes", nullable(own)},
                 {"utilization", nullable(device.latest.utilization_percent)},
                 {"memory_usage_percent", running_json(device.used_percent)},
                 {"utilization_percent", running_json(device.utilization_percent)},
                 {"temperature_celsius", nullable(device.latest.temperature_celsius)},
                 {"power_milliwatts", nullable(device.latest.power_milliwatts)}};
  object.update(device_identity_json(device));
  return object;
}

Json percent_json(const WatchedPercent& percent) {
  Json object = running_json(percent.all);
  object["latest"] = nullable(percent.latest);
  return object;
}

std::optional<std::uint64_t> increase(const std::optional<std::uint64_t>& before,
                                      const std::optional<std::uint64_t>& now) {
  return before && now && *now >= *before ? std::optional(*now - *before) : std::nullopt;
}

Json network_json(const SystemReport& system) {
  const double seconds = std::chrono::duration<double>(system.latest.at - system.first.at).count();
  const auto received = increase(system.first.received_bytes, system.latest.received_bytes);
  const auto sent = increase(system.first.sent_bytes, system.latest.sent_bytes);
  const auto rate = [&](const std::optional<std::uint64_t>& bytes) {
    return bytes && seconds > 0 ? Json(static_cast<double>(*bytes) / seconds) : Json(nullptr);
  };
  return {{"received_bytes", nullable(received)},
          {"sent_bytes", nullable(sent)},
          {"received_bytes_per_second", rate(received)},
          {"sent_bytes_per_second", rate(sent)}};
}

Json system_json(const PerformanceReport& report) {
  const SystemReport& system = report.system;
  Json object = {{"cpu_usage", nullable(system.cpu.latest)},
                 {"memory_usage", nullable(system.memory.latest)},
                 {"disk_usage", nullable(system.disk_percent)},
                 {"cpu_percent", percent_json(system.cpu)},
                 {"process_cpu_percent", percent_json(system.process_cpu)},
                 {"processors", system.processors > 0 ? Json(system.processors) : Json(nullptr)},
                 {"memory_percent", percent_json(system.memory)},
                 {"process",
                  {{"pid", report.pid},
                   {"rss_bytes", nullable(system.process.rss_bytes)},
                   {"anon_bytes", nullable(system.process.anon_bytes)},
                   {"shmem_bytes", nullable(system.process.shmem_bytes)},
                   {"swap_bytes", nullable(system.process.swap_bytes)},
                   {"locked_bytes", nullable(system.process.locked_bytes)}}},
                 {"disk",
                  {{"path", system.disk},
                   {"total_bytes", nullable(system.latest.disk_total_bytes)},
                   {"used_bytes", nullable(system.latest.disk_used_bytes)},
                   {"available_bytes", nullable(system.latest.disk_available_bytes)}}},
                 {"network", network_json(system)}};
  object["memory"] = report.machine ? host_json(report.machine->host) : Json(nullptr);
  return object;
}

}  // namespace

std::string to_json(const PerformanceReport& report) {
  Json object = {{"timestamp", iso_time(report.now_wall_ns)},
                 {"started", iso_time(report.now_wall_ns - report.now_ns)},
                 {"duration_seconds", static_cast<double>(report.now_ns) / 1e9},
                 {"monitoring", report.watching},
                 {"gpu_metrics", Json::object()},
                 {"training_metrics", Json::object()},
                 {"system_metrics", system_json(report)},
                 {"steps", steps_json(report.steps)},
                 {"values_of_further_names", report.unnamed_values},
                 {"values_after_stop", report.late_values},
                 {"problems", Json::array()}};
  for (const MetricReport& metric : report.metrics) {
    object["training_metrics"][metric.name] = summary_json(metric.values);
  }
  if (report.machine) {
    for (const WatchedDevice& device : report.machine->devices) {
      if (!device.is_host) object["gpu_metrics"][device.key] = device_json(device, *report.machine, report.pid);
    }
    object["problems"] = report.machine->problems;
    for (const std::string& key : report.machine->missing_keys) {
      object["problems"].push_back("there is no device " + key + " here; `tidemark devices` lists them");
    }
  }
  return print_report(object);
}

}  // namespace tidemark
