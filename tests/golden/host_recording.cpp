#include "golden/host_recording.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "trace/writer.h"

namespace tidemark::testing {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

std::unique_ptr<TraceWriter> open_recording(const std::string& path) {
  ProcessInfo info;
  info.pid = 900;
  info.parent_pid = 1;
  info.hostname = "node7";
  info.command_line = "python load.py";
  info.python_version = "3.11.7";
  info.torch_version = "2.4.0";
  info.stack_mode = "python";
  info.recorder_version = "0.1.0";
  info.start_wall_ns = 1'700'000'000'000'000'000;  // 2023-11-14 22:13:20 UTC
  auto sink = open_file_sink(path, true);
  EXPECT_TRUE(sink.ok());
  auto writer = TraceWriter::create(std::move(*sink), info);
  EXPECT_TRUE(writer.ok());
  return std::move(*writer);
}

void allocate_block(TraceWriter& writer, std::uint64_t time_ns, std::uint64_t address, std::uint64_t size,
                    Device device) {
  Event event;
  event.time_ns = time_ns;
  event.address = address;
  event.size = size;
  event.device = device;
  EXPECT_TRUE(writer.event(event).ok());
}

HostProcess host_process(std::int64_t pid, ProcessRole role, std::uint64_t anon_mib, std::uint64_t shmem_mib,
                         std::optional<std::uint64_t> private_mib) {
  HostProcess made;
  made.pid = pid;
  made.parent_pid = role == ProcessRole::main ? 1 : 900;
  made.role = role;
  made.recorded = role == ProcessRole::main;
  if (role == ProcessRole::data_worker) {
    made.number = static_cast<std::uint32_t>(pid - 910);
    made.count = 2;
  }
  made.pages = {(anon_mib + shmem_mib + 100) * kMiB, anon_mib * kMiB, 100 * kMiB, shmem_mib * kMiB, 0, 0, 0};
  if (private_mib) {
    made.private_bytes = *private_mib * kMiB;
    made.pss_bytes = (*private_mib + 40) * kMiB;
  }
  made.name = "python load.py";
  return made;
}

void sample_host(TraceWriter& writer, std::uint64_t time_ns, std::uint64_t used_mib,
                 const std::vector<HostProcess>& processes, std::uint64_t times_at_limit) {
  const HostProcess& own = processes.front();
  HostSample usage;
  usage.time_ns = time_ns;
  usage.rss_bytes = own.pages.rss_bytes;
  usage.anon_bytes = own.pages.anon_bytes;
  usage.file_bytes = own.pages.file_bytes;
  usage.shmem_bytes = own.pages.shmem_bytes;
  usage.job_processes = static_cast<std::uint32_t>(processes.size());
  for (const HostProcess& each : processes) {
    add_known(usage.job_rss_bytes, each.pages.rss_bytes);
    add_known(usage.job_anon_bytes, each.pages.anon_bytes);
    add_known(usage.job_shmem_bytes, each.pages.shmem_bytes);
  }
  usage.cgroup_usage_bytes = used_mib * kMiB;
  usage.cgroup_limit_bytes = kGiB;
  usage.cgroup_oom_kills = times_at_limit > 40 ? 3 : 2;
  usage.machine_available_bytes = 9 * kGiB - used_mib * kMiB;
  writer.sample(usage);
  HostPartsSample parts;
  parts.time_ns = time_ns + kMillisecond;
  parts.cgroup = {used_mib * kMiB, kGiB, (used_mib - 120) * kMiB, 50 * kMiB, 48 * kMiB, 16 * kMiB, kMiB, 0};
  parts.cgroup_events = {0, 0, times_at_limit, 2, {}};
  parts.machine = {12 * kGiB, 16 * kGiB, 5 * kGiB, 4 * kGiB, kGiB, kGiB, {}, 0};
  parts.machine_available_bytes = usage.machine_available_bytes;
  parts.machine_oom_kills = 7;
  parts.processes = processes;
  writer.sample(parts);
}

void write_host_job(const std::string& path) {
  const auto writer = open_recording(path);
  allocate_block(*writer, 10 * kMillisecond, 0x1000, 200 * kMiB, {DeviceType::cpu, 0});
  allocate_block(*writer, 12 * kMillisecond, 0x70000, 32 * kMiB, {DeviceType::cuda_host, 0});
  sample_host(*writer, 20 * kMillisecond, 520, {host_process(900, ProcessRole::main, 300, 4, 300)}, 0);
  const HostProcess main = host_process(900, ProcessRole::main, 320, 24, 60);
  sample_host(*writer, 120 * kMillisecond, 700,
              {main, host_process(910, ProcessRole::data_worker, 330, 12, 40),
               host_process(911, ProcessRole::data_worker, 400, 8, 120)},
              0);
  sample_host(*writer, 220 * kMillisecond, 1010,
              {main, host_process(911, ProcessRole::data_worker, 720, 8, {}),
               host_process(910, ProcessRole::data_worker, 330, 12, {})},
              40);
  KilledProcess killed;
  killed.time_ns = 260 * kMillisecond;
  killed.process = host_process(911, ProcessRole::data_worker, 730, 8, {});
  killed.evidence = KillEvidence::exit_signal;
  killed.scope = KillScope::cgroup;
  killed.cgroup_usage_bytes = 1020 * kMiB;
  killed.cgroup_limit_bytes = kGiB;
  writer->sample(killed);
  sample_host(*writer, 300 * kMillisecond, 560, {main, host_process(910, ProcessRole::data_worker, 330, 12, 40)}, 41);
  allocate_block(*writer, 320 * kMillisecond, 0x2000, kMiB, {DeviceType::cpu, 0});
  EXPECT_TRUE(writer->finish({400 * kMillisecond, true}).ok());
}

void write_hostile_host(const std::string& path) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0} - 1;
  const auto writer = open_recording(path);
  HostPartsSample parts;
  parts.time_ns = kMax;
  parts.machine = {kMax, kMax, kMax, kMax, kMax, kMax, kMax, kMax};
  parts.processes.push_back({-5,
                             kMax >> 1,
                             ProcessRole::data_worker,
                             true,
                             0xffffffff,
                             0,
                             {kMax, kMax, kMax, kMax, kMax, kMax, kMax},
                             kMax,
                             kMax,
                             "\x1b[31mred <b>\n"});
  parts.other_processes = 0xffffffff;
  parts.other_pages.anon_bytes = kMax;
  writer->sample(parts);
  parts.time_ns = 1;
  parts.processes.front().pages = {};
  writer->sample(parts);
  KilledProcess killed;
  killed.time_ns = kMax;
  killed.process = parts.processes.front();
  writer->sample(killed);
  HostSample usage;
  usage.time_ns = 5;
  usage.anon_bytes = usage.file_bytes = usage.shmem_bytes = kMax;
  writer->sample(usage);
  EXPECT_TRUE(writer->finish({10, true}).ok());
}

}  // namespace

void write_host_recordings(const std::string& folder) {
  write_host_job(folder + "/host.tide");
  write_hostile_host(folder + "/host_hostile.tide");
}

}  // namespace tidemark::testing
