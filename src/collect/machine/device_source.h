// The interface of sources, which read GPUs from outside the programs that use them, and the list of all sources.
//
// Runs in the recorder and in commands, never in a recorded process. Each source is used by one thread at a time; a
// call may block for as long as the driver does.
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
  std::optional<bool> mig_enabled;  ///< whether it is divided into MIG instances; std::nullopt without MIG
};

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;

  /// One line about the driver, "NVIDIA driver 580.159.04, CUDA 13.0"; empty if unknown.
  [[nodiscard]] virtual std::string driver() const { return ""; }
  /// Its devices, in a fixed order; MIG instances follow their GPU. Positions in this list identify devices below.
  [[nodiscard]] virtual const std::vector<DeviceInfo>& devices() const = 0;
  /// A sample without time and device. An error that names the device if the device is lost (fell off the bus, needs a
  /// reset) or was never present.
  virtual Result<DeviceSample> read(std::size_t device) = 0;
  /// The processes that hold memory of the device, each once, with PID and bytes; name_process() fills in the rest.
  /// std::nullopt if the driver does not list them (not supported, no permission).
  virtual Result<std::optional<std::vector<SampledProcess>>> processes(std::size_t device) = 0;
};

/// Where sources look for files and libraries. Tests set other places.
struct SourcePlaces {
  std::string root;                        ///< before "/sys" and "/proc"
  std::string nvml = "libnvidia-ml.so.1";  ///< as for dlopen()
};

/// The result of opening one source of the list.
struct OpenedSource {
  const char* vendor = "";
  std::unique_ptr<DeviceSource> source;  ///< null if the driver is absent or does not work
  std::string absent;                    ///< why the source is absent, if that is not an error; else empty
  std::string problem;                   ///< what does not work and what to do, if there is an error; else empty
};

/// Tries all sources of the list. Loading a driver's library can take seconds.
[[nodiscard]] std::vector<OpenedSource> open_device_sources(const SourcePlaces& places = {});

[[nodiscard]] OpenedSource open_nvml_source(const SourcePlaces& places);

}  // namespace tidemark
