// What the sampler read, on the way to the recordings. Times are ticks of the recorder's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"
#include "collect/machine/process_names.h"

namespace tidemark {

/// The devices that the readings are about, by position; the first thing that is read.
struct DevicesFound {
  std::vector<DeviceInfo> devices;
  std::vector<std::optional<std::uint64_t>> total_bytes;
  std::vector<std::string> problems;  ///< of drivers that are there and do not work
};

struct DeviceReadingAt {
  std::uint64_t ticks = 0;
  std::size_t device = 0;
  DeviceReading reading;
};

struct NamedProcess {
  DeviceProcess process;
  ProcessName who;
  bool of_job = false;
};

struct DeviceProcessesAt {
  std::uint64_t ticks = 0;
  std::size_t device = 0;
  std::vector<NamedProcess> processes;
};

/// The device does not answer any more: nothing else comes of it.
struct DeviceLost {
  std::size_t device = 0;
  std::string why;
};

struct ProcessMemory {
  std::int64_t pid = -1;
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> pss_bytes;  ///< none also where it was not read this time
};

struct HostReadingAt {
  std::uint64_t ticks = 0;
  std::vector<ProcessMemory> processes;  ///< of the job
  std::optional<std::uint64_t> cgroup_limit_bytes;
  CgroupReading cgroup;
};

using Reading = std::variant<DevicesFound, DeviceReadingAt, DeviceProcessesAt, DeviceLost, HostReadingAt>;

}  // namespace tidemark
