// The contract of what reads GPUs from outside the programs that use them, and the list of those there are.
//
// Runs in the recorder and in commands, never in a recorded process. One thread at a time for each source; a call may
// block for as long as the driver does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// What a device is. Text is empty where it is not known.
struct DeviceInfo {
  std::string vendor;       ///< "nvidia", "amd", "intel"
  std::uint32_t index = 0;  ///< as the vendor's own tool numbers it (nvidia-smi), else the number of its card in /sys
  std::string name;         ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;         ///< "GPU-…", "MIG-…", or the vendor's serial of the chip
  std::string bus_id;       ///< PCI address, "0000:65:00.0"
  std::optional<bool> mig_enabled;           ///< the device is divided into MIG instances
  std::optional<std::uint32_t> instance_of;  ///< of a MIG instance: `index` of its GPU; `index` counts within that GPU
};

/// What a device says at one time; none where it does not say.
struct DeviceReading {
  std::optional<std::uint64_t> total_bytes;
  /// In use by anybody: allocations, contexts, loaded kernels. Includes what the driver keeps for itself only where
  /// `driver_reserved_bytes` is not known (NVML before driver 510).
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> driver_reserved_bytes;  ///< kept by driver and firmware, usable by nobody
  std::optional<std::uint32_t> utilization_percent;    ///< share of recent time in which a kernel ran
  std::optional<std::int32_t> temperature_celsius;
  std::optional<std::uint32_t> power_milliwatts;
};

/// A process that holds memory of a device.
struct DeviceProcess {
  std::int64_t pid = -1;               ///< as the driver says: perhaps of another PID namespace (see process_names.h)
  std::optional<std::uint64_t> bytes;  ///< none where the driver does not say

  bool operator==(const DeviceProcess&) const = default;
};

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;

  /// One line about the driver, "NVIDIA driver 580.159.04, CUDA 13.0"; empty where nothing is known.
  [[nodiscard]] virtual std::string driver() const { return ""; }
  /// Its devices, in an order that stays; MIG instances follow their GPU. Positions in it name devices below.
  [[nodiscard]] virtual const std::vector<DeviceInfo>& devices() const = 0;
  /// An error when the device is lost (fell off the bus, needs a reset) or was never there; it names the device.
  virtual Result<DeviceReading> read(std::size_t device) = 0;
  /// Who uses it, each process once. None where the driver does not say (not supported, no permission).
  virtual Result<std::optional<std::vector<DeviceProcess>>> processes(std::size_t device) = 0;
};

/// Where sources look. Tests point elsewhere.
struct SourcePlaces {
  std::string root;                        ///< before "/sys" and "/proc"
  std::string nvml = "libnvidia-ml.so.1";  ///< as for dlopen()
};

/// What became of one entry of the list.
struct OpenedSource {
  const char* vendor = "";
  std::unique_ptr<DeviceSource> source;  ///< null when there is no such driver, or it does not work
  std::string absent;                    ///< why there is none, when nothing is wrong with that; else empty
  std::string problem;                   ///< why it does not work and what to do, when something is wrong; else empty
};

/// Tries all sources of the list. Loading a driver's library can take seconds.
[[nodiscard]] std::vector<OpenedSource> open_device_sources(const SourcePlaces& places = {});

}  // namespace tidemark
