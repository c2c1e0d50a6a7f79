// The GPUs of a machine, their processes, and the machine's memory at this moment; for reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"

namespace tidemark {

struct ListedDevice {
  DeviceInfo info;               ///< cuda_index: the number for a CUDA program with this process's environment
  bool visible_to_cuda = false;  ///< for the same program; false for other vendors
  DeviceSample sample;           ///< without time and device
  std::string error;             ///< why there is no sample; empty if there is one
  std::optional<std::vector<SampledProcess>> processes;  ///< most bytes first; std::nullopt if the driver does not list
                                                         ///< them
};

struct ListedDriver {
  std::string vendor;
  std::string version;  ///< one line; empty if the driver does not work
  std::string problem;  ///< why it does not work, and what to do; else empty
};

/// The memory control group that limits this process; see Cgroup.
struct CgroupFacts {
  int version = 0;  ///< 1 or 2
  std::string folder;
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> usage_bytes;
  std::optional<std::uint64_t> oom_kills;
};

struct Inventory {
  std::vector<ListedDriver> drivers;  ///< installed drivers, working or not
  std::vector<ListedDevice> devices;
  std::optional<std::string> cuda_visible_devices;  ///< environment variables of this process
  std::optional<std::string> cuda_device_order;
  std::string visibility_problem;  ///< see VisibleDevices; empty without NVIDIA GPUs
  HostMemory host;
  std::optional<CgroupFacts> cgroup;  ///< std::nullopt without control groups
};

[[nodiscard]] Inventory take_inventory(const SourcePlaces& places = {});

}  // namespace tidemark
