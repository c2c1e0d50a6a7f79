// Growth of the memories of a watched machine: the devices, the processes on them, and the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/forecast/growth_detector.h"
#include "base/enum_names.h"
#include "monitor/machine_state.h"
#include "monitor/recordings_watch.h"

namespace tidemark {

enum class GrowingMemory : std::uint8_t {
  device = 0,          ///< use of a device
  process_device = 1,  ///< use of a device by a process
  host = 2,            ///< use of the host, or of the control group
  process_host = 3,    ///< PSS of a process, or RSS if PSS is unknown
  allocated = 4,       ///< allocated by the framework's allocator, in a process that is being recorded
};
inline constexpr EnumName<GrowingMemory> kGrowingMemoryNames[] = {{GrowingMemory::device, "device"},
                                                                  {GrowingMemory::process_device, "process_device"},
                                                                  {GrowingMemory::host, "host"},
                                                                  {GrowingMemory::process_host, "process_host"},
                                                                  {GrowingMemory::allocated, "allocated"}};
[[nodiscard]] constexpr std::string_view name_of(GrowingMemory value) {
  return name_in(kGrowingMemoryNames, value);
}

enum class GrowthVerdict : std::uint8_t {
  unknown = 0,          ///< too few samples
  none = 1,             ///< no lasting growth: steady, warm-up, sawtooth, a level
  below_threshold = 2,  ///< it grows more slowly than the threshold
  uncertain = 3,  ///< the estimate is above the threshold; its interval reaches below, or it has not grown for long
  growing = 4,    ///< the whole interval is above the threshold
};
inline constexpr EnumName<GrowthVerdict> kGrowthVerdictNames[] = {{GrowthVerdict::unknown, "unknown"},
                                                                  {GrowthVerdict::none, "none"},
                                                                  {GrowthVerdict::below_threshold, "below_threshold"},
                                                                  {GrowthVerdict::uncertain, "uncertain"},
                                                                  {GrowthVerdict::growing, "growing"}};
[[nodiscard]] constexpr std::string_view name_of(GrowthVerdict value) {
  return name_in(kGrowthVerdictNames, value);
}

struct MemoryGrowth {
  GrowingMemory memory = GrowingMemory::device;
  // For a device and a process on it: position in MachineState::devices; for a process: in MachineState::processes. For
  // allocated memory: in the list of recorded processes, and in RecordedProcess::devices.
  std::size_t device = 0;
  std::size_t process = 0;
  bool is_pss = false;  ///< for process_host
  GrowthVerdict verdict = GrowthVerdict::unknown;
  std::uint64_t first_bytes = 0;
  std::uint64_t last_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t sample_count = 0;
  double span_seconds = 0;                ///< of the samples
  std::optional<LiveGrowth> growth = {};  ///< input of the verdict; std::nullopt if there is no growth, or it is
                                          ///< unknown

  [[nodiscard]] double bytes_per_minute() const { return growth ? growth->bytes_per_minute.value : 0; }
};

/// The growth detector's result for every sampled memory, by kind, and within a kind the fastest first. A machine
/// without GPUs has only the host, not also a device for it.
[[nodiscard]] std::vector<MemoryGrowth> memory_growth(const MachineState& state,
                                                      const std::vector<RecordedProcess>& recorded,
                                                      double threshold_bytes_per_minute);

}  // namespace tidemark
