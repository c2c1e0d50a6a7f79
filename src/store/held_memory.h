// What the recorded process held at one time by its own events, and what the driver said of a device then: all that a
// ledger is made of. Sizes and times as in store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "trace/sample.h"

namespace tidemark {

/// What one stack held on one device.
struct StackUsage {
  std::uint8_t device = 0;  ///< index into Overview::devices
  StackId stack;            ///< invalid: blocks recorded without a stack
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;

  bool operator==(const StackUsage&) const = default;
};

/// After all events up to a time, those at exactly that time included.
struct HeldMemory {
  struct OnDevice {
    std::uint64_t allocated_bytes = 0;
    std::optional<std::uint64_t> reserved_bytes;  ///< none where the allocator reported none by then

    bool operator==(const OnDevice&) const = default;
  };
  std::vector<OnDevice> devices;  ///< by index into Overview::devices; later ones had no event by then
  std::vector<StackUsage>
      driver_stacks;  ///< on devices with is_driver_memory(); in no particular order, never 0 blocks
};

/// Who used a device at one time.
struct ProcessesMoment {
  DeviceProcessesSample sample;
  HeldMemory held;
};

/// A device at the time of one of its samples.
struct DeviceMoment {
  std::uint64_t time_ns = 0;
  std::uint64_t used_bytes = 0;
  HeldMemory held;
  std::optional<ProcessesMoment> processes;       ///< the latest that are not after it
  std::optional<ProcessesMoment> next_processes;  ///< the first after it
};

/// A sampled device when most of it was used, and at the end. Samples without used bytes do not count.
struct DeviceMoments {
  SampledDevice device;
  bool seen_in_use = false;  ///< by the recorded process, as the driver said at some time
  /// The first sample with the most used bytes of those that no slow call of the driver covers: what is used then
  /// belongs to the events of the same time.
  std::optional<DeviceMoment> peak;
  std::optional<std::uint64_t> transient_peak_bytes;  ///< used at a covered sample, where that is more than at the peak
  std::optional<DeviceMoment> end;                    ///< the last sample that is not after the last event
};

}  // namespace tidemark
