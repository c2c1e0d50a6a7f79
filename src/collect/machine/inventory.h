// What a machine has at this moment: its GPUs, who uses them, and its own memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"
#include "collect/machine/process_names.h"

namespace tidemark {

struct ListedProcess {
  DeviceProcess process;
  ProcessName who;
};

struct ListedDevice {
  DeviceInfo info;
  bool visible_to_cuda = false;             ///< with this process's environment; false for other vendors
  std::optional<std::uint32_t> cuda_index;  ///< N of cuda:N
  DeviceReading reading;
  std::string error;                                    ///< why there is no reading; empty when there is one
  std::optional<std::vector<ListedProcess>> processes;  ///< most bytes first; none where the driver does not say
};

struct ListedDriver {
  std::string vendor;
  std::string version;  ///< one line; empty where it does not work
  std::string problem;  ///< why not, and what to do; else empty
};

struct Inventory {
  std::vector<ListedDriver> drivers;  ///< those that are there, working or not
  std::vector<ListedDevice> devices;
  std::optional<std::string> cuda_visible_devices;  ///< the variables of this process
  std::optional<std::string> cuda_device_order;
  std::string visibility_problem;  ///< see VisibleDevices; empty without NVIDIA GPUs
  HostMemory host;
  std::optional<Cgroup> cgroup;
};

[[nodiscard]] Inventory take_inventory(const SourcePlaces& places = {});

}  // namespace tidemark
