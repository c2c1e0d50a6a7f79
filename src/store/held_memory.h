// Memory of the recorded process at one time by its own events. Sizes and times as in store.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "trace/sample.h"

namespace tidemark {

/// Memory of one stack on one device.
struct StackUsage {
  std::uint8_t device = 0;  ///< index into Overview::devices
  StackId stack;            ///< invalid: blocks recorded without a stack
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;

  bool operator==(const StackUsage&) const = default;
};

/// After all events up to a time, including events at exactly that time.
struct HeldMemory {
  struct OnDevice {
    std::uint64_t allocated_bytes = 0;
    std::optional<std::uint64_t> reserved_bytes;  ///< nullopt if the allocator reported none by then

    bool operator==(const OnDevice&) const = default;
  };
  std::vector<OnDevice> devices;  ///< by index into Overview::devices; later ones had no event by then
  std::vector<StackUsage>
      driver_stacks;  ///< on devices with is_driver_memory(); in no particular order, never 0 blocks
};

/// The state of the events while samples go by.
class EventsSoFar {
 public:
  virtual ~EventsSoFar() = default;
  /// Memory held according to the events so far.
  [[nodiscard]] virtual HeldMemory held() const = 0;
  /// Time of the last event: so far while a file is read, or of all events if they are known already. nullopt without
  /// events.
  [[nodiscard]] virtual std::optional<std::uint64_t> last_event_ns() const = 0;
};

/// Takes the samples of a recording in order of time, each after the events up to its own time. A sample that is before
/// one of the same device counts as taken at the time of that one.
using SampleConsumer = std::function<void(const SampleRecord& sample, const EventsSoFar& events)>;

}  // namespace tidemark
