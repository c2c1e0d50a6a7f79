// What the sampler read, on the way to the recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"
#include "trace/sample.h"

namespace tidemark {

/// The devices that the readings are about; the first thing that is read.
struct DevicesFound {
  std::vector<DeviceInfo> devices;
  std::vector<std::string> problems;  ///< of drivers that are there and do not work
};

/// The device does not answer any more: nothing else comes of it.
struct DeviceLost {
  SampledDeviceId device;
  std::string why;
};

struct ProcessMemory {
  std::int64_t pid = -1;
  std::string name;  ///< where it was looked up; else empty
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> pss_bytes;  ///< none also where it was not read this time
  ProcessPages pages = {};
  std::optional<std::uint64_t> private_bytes = {};  ///< likewise
  bool below_recorder = false;                      ///< where a machine is watched: see JobProcess
  bool is_recorder = false;                         ///< likewise
};

/// The host: all but the recorded process's own memory, which is among that of the job's processes.
struct HostReading {
  HostSample sample;
  // Where a machine is watched (SampleOptions::find_job).
  HostMemory machine;
  std::string cgroup_folder;                                ///< empty: there are no control groups
  std::optional<std::int64_t> cgroup_pid;                   ///< the process whose it is; none: the sampler's own
  std::optional<std::uint64_t> cgroup_inactive_file_bytes;  ///< see Cgroup
  std::vector<ProcessMemory> processes;
};

/// Samples without their time, of devices by their position in DevicesFound: a recording has times of its own, and only
/// the devices that its process sees. A process of the recording's own job is ProcessKind::job.
struct Reading {
  std::uint64_t ticks = 0;  ///< of the recorder's clock; 0 for what has no time
  std::variant<DevicesFound, DeviceSample, DeviceProcessesSample, DeviceLost, HostReading, HostPartsSample,
               KilledProcess>
      what;
};

}  // namespace tidemark
