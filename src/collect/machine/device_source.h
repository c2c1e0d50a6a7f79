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
#include "trace/sample.h"

namespace tidemark {

/// A device as a source describes it, without the number that a program gives it (`cuda_index`).
struct DeviceInfo : SampledDevice {
  std::optional<bool> mig_enabled;  ///< whether the device is divided into MIG instances; none where there is no MIG
};

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;

  /// One line about the driver, "NVIDIA driver 580.159.04, CUDA 13.0"; empty where nothing is known.
  [[nodiscard]] virtual std::string driver() const { return ""; }
  /// Its devices, in an order that stays; MIG instances follow their GPU. Positions in it name devices below.
  [[nodiscard]] virtual const std::vector<DeviceInfo>& devices() const = 0;
  /// A sample without time and device. An error when the device is lost (fell off the bus, needs a reset) or was never
  /// there; it names the device.
  virtual Result<DeviceSample> read(std::size_t device) = 0;
  /// The processes that hold memory of it, each once, with PID and bytes; name_process() tells the rest. None where the
  /// driver does not list them (not supported, no permission).
  virtual Result<std::optional<std::vector<SampledProcess>>> processes(std::size_t device) = 0;
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

[[nodiscard]] OpenedSource open_nvml_source(const SourcePlaces& places);

}  // namespace tidemark
