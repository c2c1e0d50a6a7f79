// A plan beside a real run of the same program: the events of PyTorch's allocator, one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/event.h"

namespace tidemark {

/// Events of PyTorch's allocator on one GPU in one process.
struct DeviceEvents {
  std::optional<std::int32_t> rank;
  Device device;
  std::vector<Event> events;  ///< allocate, free and out_of_memory
};

/// From recordings, including unfinished ones. GPUs without events are left out.
[[nodiscard]] Result<std::vector<DeviceEvents>> read_gpu_events(const std::vector<std::string>& files);

/// The first events that are not the same: another kind, another size, or one of them missing.
struct EventDifference {
  std::size_t index = 0;  ///< of the planned events, from 0
  std::optional<Event> planned;
  std::optional<Event> real;
};

/// Peaks in bytes and a number of allocations, of a plan and of the same number of events of the real run.
struct VerifiedPeaks {
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
  std::uint64_t allocations = 0;
};

struct VerifiedDevice {
  std::optional<std::int32_t> rank;
  Device device;
  VerifiedPeaks planned;
  VerifiedPeaks real;
  std::size_t event_count = 0;  ///< of the plan
  std::optional<EventDifference> difference;
  bool within_tolerance = false;
};

struct Verification {
  std::vector<VerifiedDevice> devices;  ///< the devices of the plan
  bool equal = true;                    ///< on all of them, every event
  bool within_tolerance = true;         ///< on all of them, both peaks
};

/// How far a peak of a plan may be from the real one, as a share of that.
inline constexpr double kVerifyTolerance = 0.01;

/// Whether the real run has done as much on each GPU as the plan.
[[nodiscard]] bool reaches(const std::vector<DeviceEvents>& real, const std::vector<DeviceEvents>& planned);

/// Compares each device of the plan with the device of the same rank and number, up to the plan's last event.
[[nodiscard]] Verification verify(const std::vector<DeviceEvents>& planned, const std::vector<DeviceEvents>& real);

}  // namespace tidemark
