// The sampler's readings, before they are written to recordings.
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

/// The devices of the readings; the first reading.
struct DevicesFound {
  std::vector<DeviceInfo> devices;
  std::vector<std::string> problems;  ///< drivers that are installed and do not work
};

/// The device no longer answers; its last reading.
struct DeviceLost {
  SampledDeviceId device;
  std::string why;
};

struct ProcessMemory {
  std::int64_t pid = -1;
  std::string name;  ///< if it was looked up; else empty
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> pss_bytes;  ///< std::nullopt also if it was not read this time
  ProcessPages pages = {};
  std::optional<std::uint64_t> private_bytes = {};  ///< as pss_bytes
  bool below_recorder = false;                      ///< if a machine is watched: see JobProcess
  bool is_recorder = false;                         ///< if a machine is watched: see JobProcess
};

/// The host, without the recorded process's own memory, which is among the memory of the job's processes.
struct HostReading {
  HostSample sample;
  // If a machine is watched (SampleOptions::find_job).
  HostMemory machine;
  std::string cgroup_folder;                                ///< empty without control groups
  std::optional<std::int64_t> cgroup_pid;                   ///< the process of that group; std::nullopt: the sampler's
                                                            ///< own
  std::optional<std::uint64_t> cgroup_inactive_file_bytes;  ///< see Cgroup
  std::vector<ProcessMemory> processes;
};

/// Samples without their time; devices by their position in DevicesFound: a recording has its own time axis, and only
/// the devices that its process sees. A process of the recording's own job is ProcessKind::job.
struct Reading {
  std::uint64_t ticks = 0;  ///< of the recorder's clock; 0 for readings without a time
  std::variant<DevicesFound, DeviceSample, DeviceProcessesSample, DeviceLost, HostReading, HostPartsSample,
               KilledProcess>
      what;
};

}  // namespace tidemark
