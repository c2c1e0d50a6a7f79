#include "publish/metrics/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "monitor/device_keys.h"

namespace tidemark {

namespace {

constexpr Instrument kGauge = Instrument::gauge;
constexpr Instrument kSum = Instrument::up_down_counter;

// Names that begin with hw, process and system are from OpenTelemetry's semantic conventions, the others are
// Tidemark's.
enum Family : std::size_t {
  kGpuLimit,
  kGpuUsage,
  kGpuMemoryUtilization,
  kGpuPeak,
  kGpuDriverReserved,
  kGpuUtilization,
  kTemperature,
  kPower,
  kStatus,
  kProcessGpuUsage,
  kProcessUsage,
  kProcessPss,
  kFrameworkAllocated,
  kFrameworkReserved,
  kFrameworkCategory,
  kFrameworkComponent,
  kProcessCudaPinned,
  kRecordingLag,
  kSystemLimit,
  kSystemAvailable,
  kCgroupUsage,
  kCgroupLimit,
  kCgroupOomKills,
  kMemoryUsage,
  kMemoryLimit,
  kRiskLevel,
  kRiskConfidence,
  kGrowth,
  kTimeToLimit,
  kDropped,
  kBuildInfo,
};
constexpr std::array<MetricFamily, kBuildInfo + 1> kFamilies = {{
    {"hw.gpu.memory.limit", "By", kSum, "Size of the GPU's memory."},
    {"hw.gpu.memory.usage", "By", kSum, "Memory of the GPU that is used, by all processes and the driver."},
    {"hw.gpu.memory.utilization", "1", kGauge, "Share of the GPU's memory that is used, 0 to 1."},
    {"tidemark.gpu.memory.peak", "By", kGauge,
     "Most memory of the GPU that was used since this monitor started; between samples too where recorders know."},
    {"tidemark.gpu.memory.driver_reserved", "By", kSum, "Memory of the GPU that its driver keeps for itself."},
    {"hw.gpu.utilization", "1", kGauge, "Share of the time in which the GPU worked, 0 to 1."},
    {"hw.temperature", "Cel", kGauge, "Temperature of the GPU."},
    {"hw.power", "W", kGauge, "Power that the GPU takes."},
    {"hw.status", "1", kSum, "1 for the state that the GPU is in: ok, or failed where it is lost."},
    {"tidemark.process.gpu.memory.usage", "By", kSum, "Memory of a GPU that a process holds, as the driver says."},
    {"process.memory.usage", "By", kSum, "Resident host memory of a process that uses a GPU or is watched (RSS)."},
    {"tidemark.process.memory.pss", "By", kSum,
     "Host memory of a process in which pages that n processes share count 1/n (PSS)."},
    {"tidemark.framework.memory.allocated", "By", kSum,
     "Memory of a device that a recorded process holds in tensors, by its framework's allocator."},
    {"tidemark.framework.memory.reserved", "By", kSum,
     "Memory of a device that the allocator of a recorded process has taken from the driver."},
    {"tidemark.framework.memory.category", "By", kSum,
     "Memory of a device that a recorded process holds in tensors, by what they are: parameter, activation and so on."},
    {"tidemark.framework.memory.component", "By", kSum,
     "Memory of a device that a recorded process holds in tensors, by the part of the model: attention, mlp and so "
     "on."},
    {"tidemark.process.memory.cuda_pinned", "By", kSum,
     "Page-locked host memory that a recorded process has from the CUDA driver."},
    {"tidemark.recording.lag", "s", kGauge,
     "How late the events of a recorded process are read; only where it makes them faster than they can be read."},
    {"system.memory.limit", "By", kSum, "Size of the host's memory."},
    {"system.memory.linux.available", "By", kSum, "Host memory that programs can get without swapping."},
    {"tidemark.cgroup.memory.usage", "By", kSum,
     "Host memory of the control group with the lowest limit around the monitor, with cached files."},
    {"tidemark.cgroup.memory.limit", "By", kSum, "Limit of that control group."},
    {"tidemark.cgroup.oom_kills", "{kill}", Instrument::counter,
     "Processes of that control group that the kernel killed for lack of memory since the group exists."},
    {"tidemark.memory.usage", "By", kSum, "Memory use charged to its limit, of a GPU or the host."},
    {"tidemark.memory.limit", "By", kSum,
     "What programs can have of a memory: without what the driver keeps, within the control group's limit."},
    {"tidemark.memory.risk_level", "{level}", kGauge,
     "Whether a memory runs out: 0 low, 1 medium, 2 high, 3 critical."},
    {"tidemark.memory.risk_confidence", "1", kGauge, "How often such assessments are right, 0 to 1."},
    {"tidemark.memory.growth", "By/s", kGauge, "Growth of the running peak of a memory; 0 where it does not grow."},
    {"tidemark.memory.time_to_limit", "s", kGauge,
     "Time until a memory reaches its limit, with its 90% interval; none where it will not."},
    {"tidemark.output.dropped", "{item}", Instrument::counter, "What this monitor could not hand on, by output."},
    {"tidemark.build_info", "{build}", kGauge, "1, with the version of Tidemark as a label."},
}};

class Builder {
 public:
  Builder() {
    for (const MetricFamily& family : kFamilies) set.metrics.push_back({&family, {}});
  }

  void add(Family family, const MetricAttributes& attributes, MetricValue value) {
    set.metrics[family].points.push_back({attributes, value});
  }
  void add_bytes(Family family, const MetricAttributes& attributes, const std::optional<std::uint64_t>& value) {
    if (value) add(family, attributes, metric_integer(*value));
  }

  MetricSet set;
};

std::string vendor_name(const std::string& vendor) {
  if (vendor == "nvidia") return "NVIDIA";
  if (vendor == "amd") return "AMD";
  return vendor == "intel" ? "Intel" : vendor;
}

MetricAttributes device_attributes(const WatchedDevice& device) {
  return {{"hw.id", device_id(device)},
          {"hw.name", "GPU " + device.key},
          {"hw.model", device.info.name},
          {"hw.vendor", vendor_name(device.info.vendor)}};
}

void add_device(Builder& builder, const WatchedDevice& device) {
  const MetricAttributes of_gpu = device_attributes(device);
  const MetricAttributes of_part = with(of_gpu, "hw.type", "gpu");
  const bool lost = !device.lost.empty();
  builder.add(kStatus, with(of_part, "hw.state", "ok"), std::int64_t{lost ? 0 : 1});
  builder.add(kStatus, with(of_part, "hw.state", "failed"), std::int64_t{lost ? 1 : 0});
  builder.add_bytes(kGpuLimit, of_gpu, device.info.total_bytes);
  if (!device.used.empty()) builder.add_bytes(kGpuPeak, of_gpu, device.used.peak_bytes());
  if (lost || !device.sampled_at_ns) return;

  const DeviceSample& sample = device.latest;
  builder.add_bytes(kGpuUsage, of_gpu, sample.used_bytes);
  if (sample.used_bytes && device.info.total_bytes.value_or(0) > 0) {
    builder.add(kGpuMemoryUtilization, of_gpu,
                static_cast<double>(*sample.used_bytes) / static_cast<double>(*device.info.total_bytes));
  }
  builder.add_bytes(kGpuDriverReserved, of_gpu, sample.driver_reserved_bytes);
  if (sample.utilization_percent) {
    builder.add(kGpuUtilization, with(of_gpu, "hw.gpu.task", "general"), *sample.utilization_percent / 100.0);
  }
  if (sample.temperature_celsius) builder.add(kTemperature, of_part, std::int64_t{*sample.temperature_celsius});
  if (sample.power_milliwatts) builder.add(kPower, of_part, *sample.power_milliwatts / 1000.0);
}

void add_process(Builder& builder, const MachineState& state, const WatchedProcess& process) {
  const MetricAttributes of_process = {{"process.pid", std::to_string(process.pid)},
                                       {"process.command", process.name},
                                       {"tidemark.process.kind", std::string(name_of(process.kind))}};
  for (const ProcessOnDevice& part : process.devices) {
    const WatchedDevice& device = state.devices.at(part.device);
    if (!part.held || device.is_host || !device.lost.empty()) continue;
    const MetricAttributes both = with(with(of_process, "hw.id", device_id(device)), "hw.name", "GPU " + device.key);
    builder.add_bytes(kProcessGpuUsage, both, part.bytes);
  }
  builder.add_bytes(kProcessUsage, of_process, process.rss_bytes);
  builder.add_bytes(kProcessPss, of_process, process.pss_bytes);
}

MetricAttributes recorded_attributes(const RecordedProcess& process) {
  return {{"process.pid", std::to_string(process.recording.pid)}, {"process.command", process.recording.command}};
}

// A device by the name that a recorded process uses, and the machine's device if it is known.
MetricAttributes recorded_attributes(const MachineState& state, const RecordedProcess& process, const Device& device) {
  MetricAttributes attributes = with(recorded_attributes(process), "tidemark.device", to_string(device));
  const auto part = std::find_if(process.devices.begin(), process.devices.end(),
                                 [&](const RecordedDevice& known) { return known.device == device; });
  const auto watched = std::find_if(state.devices.begin(), state.devices.end(), [&](const WatchedDevice& known) {
    return part != process.devices.end() && !known.is_host && known.key == part->key;
  });
  const bool found = watched != state.devices.end();
  const bool is_host = device.type == DeviceType::cpu;
  attributes.emplace_back("hw.id", found ? device_id(*watched) : "");
  attributes.emplace_back("hw.name", found ? "GPU " + watched->key : is_host ? "host" : "");
  return attributes;
}

template <typename Sums, typename Names>
void add_owners(Builder& builder, Family family, const MetricAttributes& of_device, std::string_view name,
                const Sums& sums, const Names& names) {
  for (const auto& [owner, text] : names) {
    builder.add_bytes(family, with(of_device, name, std::string(text)), sums[static_cast<std::size_t>(owner)]);
  }
}

void add_recorded(Builder& builder, const MachineState& state, const RecordedProcess& process) {
  if (!process.goes_on()) return;
  if (process.lag.is_known() && process.lag.behind_seconds) {
    builder.add(kRecordingLag, recorded_attributes(process), *process.lag.behind_seconds);
  }
  if (process.lag.all_is_late()) return;  // no value is current
  for (const RecordedDevice& part : process.devices) {
    const MetricAttributes both = recorded_attributes(state, process, part.device);
    builder.add_bytes(kFrameworkAllocated, both, part.allocated_bytes);
    builder.add_bytes(kFrameworkReserved, both, part.reserved_bytes);
  }
  builder.add_bytes(kProcessCudaPinned, recorded_attributes(process), process.cuda_pinned_bytes);
  for (const RecordedOwners& owners : process.owners) {
    const MetricAttributes both = recorded_attributes(state, process, owners.device);
    add_owners(builder, kFrameworkCategory, both, "tidemark.category", owners.categories, kCategoryNames);
    add_owners(builder, kFrameworkComponent, both, "tidemark.component", owners.components, kComponentNames);
  }
}

void add_risk(Builder& builder, const MetricAttributes& of_memory, const RiskAssessment& risk) {
  builder.add(kRiskLevel, of_memory, std::int64_t{static_cast<int>(risk.level)});
  if (risk.confidence) builder.add(kRiskConfidence, of_memory, *risk.confidence);
  if (risk.pattern != UsagePattern::unknown) builder.add(kGrowth, of_memory, risk.growth_bytes_per_second);
  if (!risk.seconds_to_limit) return;
  const Interval& time = *risk.seconds_to_limit;
  builder.add(kTimeToLimit, with(of_memory, "tidemark.bound", "expected"), time.expected);
  builder.add(kTimeToLimit, with(of_memory, "tidemark.bound", "earliest"), time.earliest);
  if (time.latest) builder.add(kTimeToLimit, with(of_memory, "tidemark.bound", "latest"), *time.latest);
}

// The same labels for both kinds of memory, so that one alert rule is enough.
void add_memories(Builder& builder, const MachineState& state) {
  for (const WatchedDevice& device : state.devices) {
    if (device.is_host || !device.lost.empty()) continue;
    const MetricAttributes of_memory = {
        {"tidemark.memory", device.key}, {"hw.id", device_id(device)}, {"hw.name", "GPU " + device.key}};
    builder.add_bytes(kMemoryUsage, of_memory, device.used_bytes());
    builder.add_bytes(kMemoryLimit, of_memory, device.limit_bytes());
    if (device.assessed_at_ns) add_risk(builder, of_memory, device.risk);
  }
  const MetricAttributes of_host = {{"tidemark.memory", "cpu"}, {"hw.id", ""}, {"hw.name", "host"}};
  builder.add_bytes(kMemoryUsage, of_host, state.host.used_bytes());
  builder.add_bytes(kMemoryLimit, of_host, state.host.limit_bytes());
  if (state.host.assessed_at_ns) add_risk(builder, of_host, state.host.risk);
}

enum PerformanceFamily : std::size_t {
  kTrainingMetric,
  kTrainingMetricCount,
  kTrainingMetricInvalid,
  kTrainingSteps,
  kTrainingSamples,
  kStepDuration,
  kPartTime,
  kStalledSteps,
  kCpuUtilization,
  kDiskUtilization,
  kOwnMemory,
};
constexpr std::array<MetricFamily, kOwnMemory + 1> kPerformanceFamilies = {{
    {"tidemark.training.metric", "", Instrument::gauge,
     "A metric that the program logs: last, mean, min, max, std, p50, p90 or p99 of its finite values."},
    {"tidemark.training.metric.values", "{value}", Instrument::counter, "Finite values of a metric."},
    {"tidemark.training.metric.invalid", "{value}", Instrument::counter,
     "Values of a metric that were NaN or infinite."},
    {"tidemark.training.steps", "{step}", Instrument::counter, "Steps of the training loop."},
    {"tidemark.training.samples", "{sample}", Instrument::counter, "Samples in these steps."},
    {"tidemark.training.step.duration", "s", Instrument::gauge, "Duration of a step: mean, min, max, p50, p90 or p99."},
    {"tidemark.training.part.time", "s", Instrument::counter,
     "Time in a part of the steps: data (waiting for it), forward, backward or optimizer."},
    {"tidemark.training.stalled_steps", "{step}", Instrument::counter,
     "Steps that waited for data for more than a tenth of their time."},
    {"system.cpu.utilization", "1", Instrument::gauge, "Share of the time in which the processors worked, 0 to 1."},
    {"system.filesystem.utilization", "1", Instrument::gauge, "Share of a file system that is used, 0 to 1."},
    {"tidemark.training.process.memory.usage", "By", Instrument::up_down_counter,
     "Resident host memory of the training process (RSS)."},
}};

class PerformanceBuilder {
 public:
  explicit PerformanceBuilder(MetricSet& set) : set_(set), first_(set.metrics.size()) {
    for (const MetricFamily& family : kPerformanceFamilies) set.metrics.push_back({&family, {}});
  }

  void add(PerformanceFamily family, MetricAttributes attributes, MetricValue value) {
    set_.metrics[first_ + family].points.push_back({std::move(attributes), value});
  }
  void add_count(PerformanceFamily family, MetricAttributes attributes, std::uint64_t count) {
    add(family, std::move(attributes), static_cast<std::int64_t>(count));
  }

  /// A point for each known statistic.
  void add_statistics(PerformanceFamily family, const MetricAttributes& attributes, const ValueSummary& values,
                      bool with_last) {
    const RunningMoments& moments = values.moments;
    const bool any = moments.count > 0;
    const std::pair<const char*, std::optional<double>> statistics[] = {
        {"last", with_last ? values.last : std::nullopt},
        {"mean", any ? std::optional(moments.mean) : std::nullopt},
        {"min", any ? std::optional(moments.lowest) : std::nullopt},
        {"max", any ? std::optional(moments.highest) : std::nullopt},
        {"std", moments.deviation()},
        {"p50", values.p50},
        {"p90", values.p90},
        {"p99", values.p99}};
    for (const auto& [name, value] : statistics) {
      if (!value) continue;
      MetricAttributes of_statistic = attributes;
      of_statistic.emplace_back("tidemark.statistic", name);
      add(family, std::move(of_statistic), *value);
    }
  }

 private:
  MetricSet& set_;
  std::size_t first_;
};

}  // namespace

std::span<const MetricFamily> metric_families() {
  return kFamilies;
}

MetricSet to_metrics(const MachineState& state, std::span<const RecordedProcess> recorded,
                     const MonitorFacts& monitor) {
  Builder builder;
  builder.set.unix_ns = state.now_wall_ns;
  // Constant, because it marks where counters begin; but not after now if the clock has been set back.
  builder.set.start_unix_ns = std::min(state.began_wall_ns, state.now_wall_ns);
  for (const WatchedDevice& device : state.devices) {
    if (!device.is_host) add_device(builder, device);
  }
  for (const WatchedProcess& process : state.processes) {
    if (!process.ended) add_process(builder, state, process);
  }
  for (const RecordedProcess& process : recorded) add_recorded(builder, state, process);
  const WatchedHost& host = state.host;
  builder.add_bytes(kSystemLimit, {}, host.memory.total_bytes);
  builder.add_bytes(kSystemAvailable, {}, host.memory.available_bytes);
  builder.add_bytes(kCgroupUsage, {}, host.cgroup_usage_bytes);
  builder.add_bytes(kCgroupLimit, {}, host.cgroup_limit_bytes);
  builder.add_bytes(kCgroupOomKills, {}, host.cgroup_oom_kills);
  add_memories(builder, state);
  for (const auto& [output, count] : monitor.dropped) {
    builder.add(kDropped, {{"tidemark.output", output}}, metric_integer(count));
  }
  builder.add(kBuildInfo, {{"version", monitor.version}}, std::int64_t{1});
  // As PIDs of other namespaces may cause.
  for (Metric& metric : builder.set.metrics) drop_doubles(metric);
  drop_empty(builder.set);
  return std::move(builder.set);
}

std::span<const MetricFamily> performance_families() {
  return kPerformanceFamilies;
}

MetricSet to_metrics(const PerformanceReport& report, const std::string& version) {
  MetricSet set;
  if (report.machine) set = to_metrics(*report.machine, {}, {version});
  set.unix_ns = report.now_wall_ns;
  set.start_unix_ns = std::min(report.began_wall_ns, report.now_wall_ns);  // as for a machine's state
  PerformanceBuilder builder(set);
  for (const MetricReport& metric : report.metrics) {
    const MetricAttributes of_metric = {{"tidemark.metric", metric.name}};
    builder.add_statistics(kTrainingMetric, of_metric, metric.values, true);
    builder.add_count(kTrainingMetricCount, of_metric, metric.values.moments.count);
    builder.add_count(kTrainingMetricInvalid, of_metric, metric.values.nan_count + metric.values.infinite_count);
  }
  const StepSummary& steps = report.steps;
  builder.add_count(kTrainingSteps, {}, steps.steps);
  builder.add_count(kTrainingSamples, {}, steps.samples);
  builder.add_statistics(kStepDuration, {}, steps.step_seconds, false);
  for (std::size_t part = 0; part < kStepParts; ++part) {
    if (steps.parts[part].moments.count == 0) continue;
    builder.add(kPartTime, {{"tidemark.part", std::string(name_of(static_cast<StepPart>(part)))}},
                steps.parts[part].moments.sum());
  }
  if (steps.parts[static_cast<std::size_t>(StepPart::data)].moments.count > 0) {
    builder.add_count(kStalledSteps, {}, steps.stalled_steps);
  }
  const SystemReport& system = report.system;
  if (system.cpu.latest) builder.add(kCpuUtilization, {}, *system.cpu.latest / 100);
  if (system.disk_percent) {
    builder.add(kDiskUtilization, {{"system.filesystem.mountpoint", system.disk}}, *system.disk_percent / 100);
  }
  if (system.process.rss_bytes) {
    builder.add_count(kOwnMemory, {{"process.pid", std::to_string(report.pid)}}, *system.process.rss_bytes);
  }
  drop_empty(set);
  return set;
}

}  // namespace tidemark
