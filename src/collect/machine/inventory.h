// What a machine has at this moment: its GPUs, their processes, and its own memory. Plain facts, for reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"

namespace tidemark {

struct ListedDevice {
  DeviceInfo info;               ///< with the number that a CUDA program of this process's environment gives it
  bool visible_to_cuda = false;  ///< likewise; false for other vendors
  DeviceSample sample;           ///< without time and device
  std::string error;             ///< why there is no sample; empty when there is one
  std::optional<std::vector<SampledProcess>> processes;  ///< most bytes first; none where the driver does not say
};

struct ListedDriver {
  std::string vendor;
  std::string version;  ///< one line; empty where it does not work
  std::string problem;  ///< why not, and what to do; else empty
};

/// The memory control group that matters to this process; see Cgroup.
struct CgroupFacts {
  int version = 0;  ///< 1 or 2
  std::string folder;
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> usage_bytes;
  std::optional<std::uint64_t> oom_kills;
};

struct Inventory {
  std::vector<ListedDriver> drivers;  ///< those that are there, working or not
  std::vector<ListedDevice> devices;
  std::optional<std::string> cuda_visible_devices;  ///< the variables of this process
  std::optional<std::string> cuda_device_order;
  std::string visibility_problem;  ///< see VisibleDevices; empty without NVIDIA GPUs
  HostMemory host;
  std::optional<CgroupFacts> cgroup;  ///< none where there are no control groups
};

[[nodiscard]] Inventory take_inventory(const SourcePlaces& places = {});

}  // namespace tidemark
