#include "unit/tui/scene.h"

#include "base/units.h"

namespace tidemark::testing {
namespace {

WatchedDevice gpu(std::uint32_t index, std::uint64_t start, std::uint64_t growth_a_second) {
  WatchedDevice device;
  device.key = std::to_string(index);
  device.info.vendor = "nvidia";
  device.info.index = index;
  device.info.name = "NVIDIA H100 80GB HBM3";
  device.info.total_bytes = 80 * kGiB;
  for (std::uint64_t second = 0; second <= 200; ++second) {
    const std::uint64_t bytes = start + second * growth_a_second;
    // Every 20 s a recorder sees more between two samples.
    device.used.add(second * kSecondNs, bytes, second % 20 == 0 ? std::optional(bytes + 8 * kGiB) : std::nullopt);
    device.latest.used_bytes = bytes;
  }
  device.sampled_at_ns = 200 * kSecondNs;
  device.latest.driver_reserved_bytes = 512 * kMiB;
  device.latest.utilization_percent = 97;
  device.latest.temperature_celsius = 61;
  device.latest.power_milliwatts = 612'300;
  device.assessed_at_ns = 200 * kSecondNs;
  device.risk.pattern = UsagePattern::steady;
  device.risk.used_percent =
      100.0 * static_cast<double>(*device.latest.used_bytes) / static_cast<double>(80 * kGiB - 512 * kMiB);
  device.risk.sample_count = 201;
  device.risk.span_seconds = 200;
  return device;
}

WatchedProcess process(std::int64_t pid, ProcessKind kind, const char* name, std::optional<std::uint64_t> rss) {
  WatchedProcess process;
  process.pid = pid;
  process.kind = kind;
  process.name = name;
  process.rss_bytes = rss;
  if (rss) process.rss.add(200 * kSecondNs, *rss);
  return process;
}

void holds(WatchedProcess& process, std::size_t device, std::uint64_t bytes) {
  ProcessOnDevice on{.device = device, .held = true, .bytes = bytes};
  on.used.add(200 * kSecondNs, bytes);
  process.devices.push_back(on);
}

void add_host(MachineState& state) {
  state.host.memory = {.total_bytes = 1024 * kGiB, .available_bytes = 900 * kGiB};
  state.host.cgroup_usage_bytes = 60 * kGiB;
  state.host.cgroup_inactive_file_bytes = 10 * kGiB;
  state.host.cgroup_limit_bytes = 256 * kGiB;
  state.host.cgroup_parts.anon_bytes = 44 * kGiB;
  state.host.cgroup_parts.cache_bytes = 12 * kGiB;
  state.host.cgroup_parts.shmem_bytes = 3 * kGiB;
  state.host.cgroup_oom_kills = 3;
  state.host.cgroup_oom_kills_at_start = 2;
  for (std::uint64_t second = 0; second <= 200; ++second) state.host.used.add(second * kSecondNs, 50 * kGiB);
  state.host.assessed_at_ns = 200 * kSecondNs;
  state.host.risk.pattern = UsagePattern::steady;
  state.host.risk.used_percent = 19.5;
  state.host.risk.sample_count = 201;
  state.host.risk.span_seconds = 200;
}

// Too long for 80 columns: its callers can be left out.
NamedStack stack_of_attention() {
  const auto frame = [](const char* function, const char* file, std::uint32_t line) {
    FrameName name;
    name.function = function;
    name.file = file;
    name.line = line;
    return name;
  };
  NamedStack stack;
  stack.frames = {frame("<module>", "/home/user/train.py", 80), frame("train", "/home/user/train.py", 40),
                  frame("Attention.forward", "/home/user/models/attention.py", 77)};
  stack.call_site = 2;
  return stack;
}

}  // namespace

MachineState busy_machine() {
  MachineState state;
  state.devices_known = true;
  state.now_ns = 200 * kSecondNs;
  state.latest_reading_ns = state.now_ns;
  state.devices = {gpu(0, 40 * kGiB, 100 * kMiB), gpu(1, 8 * kGiB, 0)};
  RiskAssessment& risk = state.devices[0].risk;
  risk.level = RiskLevel::high;
  risk.confidence = 0.93;
  risk.pattern = UsagePattern::growth;
  risk.growth_bytes_per_second = 100.0 * static_cast<double>(kMiB);
  risk.growth_error_bytes_per_second = 2.0 * static_cast<double>(kMiB);
  risk.seconds_to_limit = {.expected = 204, .earliest = 198, .latest = 210};
  add_host(state);
  WatchedProcess training = process(4242, ProcessKind::recorded, "python train.py", 12 * kGiB);
  training.pss_bytes = 9 * kGiB;
  holds(training, 0, 59 * kGiB);
  holds(training, 1, 512 * kMiB);
  WatchedProcess loader = process(4250, ProcessKind::job, "python train.py", 2 * kGiB);
  HostProcess& seen = loader.on_host.emplace();
  seen.pid = 4250;
  seen.parent_pid = 4242;
  seen.role = ProcessRole::data_worker;
  seen.number = 0;
  seen.count = 2;
  WatchedProcess other = process(77, ProcessKind::other, "python serve.py", 3 * kGiB);
  holds(other, 1, 7 * kGiB);
  WatchedProcess hidden = process(31337, ProcessKind::other_namespace, "", std::nullopt);
  holds(hidden, 1, 256 * kMiB);
  state.processes = {training, loader, other, hidden};
  return state;
}

MachineState host_only() {
  MachineState state;
  state.devices_known = true;
  state.no_gpu = true;
  state.now_ns = 200 * kSecondNs;
  state.latest_reading_ns = state.now_ns;
  add_host(state);
  WatchedDevice host;
  host.key = "cpu";
  host.is_host = true;
  host.info.total_bytes = 256 * kGiB;
  host.latest.used_bytes = 50 * kGiB;
  host.used = state.host.used;
  host.sampled_at_ns = state.now_ns;
  host.risk = state.host.risk;
  host.assessed_at_ns = state.now_ns;
  state.devices = {host};
  return state;
}

std::vector<tui::ProcessResults> recorded_job() {
  tui::ProcessResults job;
  job.pid = 4242;
  job.name = "python train.py";
  tui::DeviceHolders held;
  held.device = "cuda:0";
  held.allocated_bytes = 50 * kGiB;
  held.peak_bytes = 55 * kGiB;
  held.by[0] = {{"", stack_of_attention(), 30 * kGiB, 120, static_cast<std::int64_t>(kGiB)},
                {"loss_of (train.py:24)", std::nullopt, 20 * kGiB, 4000, 0}};
  held.by[2] = {{"activation", std::nullopt, 35 * kGiB, 4000, -static_cast<std::int64_t>(3 * kMiB)},
                {"parameter", std::nullopt, 15 * kGiB, 120, 0}};
  job.devices = {held};
  job.findings = {{tui::FindingKind::warning,
                   "Leak: 1 call site grows by 64.0 KiB per step",
                   {"train.py:24 loss_of", "losses are kept with their graph"}}};
  return {job};
}

}  // namespace tidemark::testing
