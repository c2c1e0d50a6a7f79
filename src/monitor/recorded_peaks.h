// Data from recordings for each device: peak use between samples, and the current owners of a recorded process's
// memory, by category and component, for metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "analyze/attribution/attribution.h"
#include "follow/follower.h"
#include "monitor/device_peaks.h"
#include "trace/event.h"
#include "trace/sample.h"

namespace tidemark {

/// Peak use of a device in an interval; see DevicePeaks.
struct RecordedPeak {
  std::string uuid;  ///< UUID of the device or MIG instance
  std::uint64_t bytes = 0;
};

/// Events and samples of a recording have one clock, so a process's memory at the time of a sample is known; the
/// processes of one recorder share a clock too. Recordings of different recorders are not added up: for each, the
/// others count as other use of the device.
///
/// A process's memory is what it took from the CUDA driver, if the recording has these calls; else what its allocator
/// has reserved, with the allocated bytes as a lower bound, because releases of cached segments are not reported. There
/// are no peaks for a device without a UUID, or for a process that the driver lists only on another device.
///
/// Not thread-safe. Memory is bounded by the followed recordings.
class RecordedPeaks {
 public:
  using Recording = DevicePeaks::Process;

  /// Begins a recording. `recorder`: its recorder; `started_ns`: the recording's time 0 on its recorder's clock, if
  /// known.
  [[nodiscard]] Recording begin(const std::string& recorder, const std::string& path,
                                std::optional<std::uint64_t> started_ns);
  /// Batches come in the order of the recording.
  void add(Recording recording, const FollowedBatch& batch);
  /// Earlier events have been added: later ones count. May be called repeatedly.
  void caught_up(Recording recording);
  /// The recording has ended; later batches are ignored.
  void end(Recording recording);

  /// The peaks found since the last call. Considers data that is at least half a second old, because some is written
  /// late.
  [[nodiscard]] std::vector<RecordedPeak> take();

 private:
  /// Memory of the program on the device with one number.
  struct Held {
    std::uint64_t allocated_bytes = 0;
    std::uint64_t reserved_bytes = 0;
    std::optional<std::uint64_t> driver_bytes;  ///< taken from the driver; std::nullopt: not recorded
    DevicePeaks* counts = nullptr;              ///< where it is counted; null: not now
  };
  struct Sampled {
    std::string uuid;
    std::optional<std::int8_t> index;  ///< the program's number of the device
    bool lists_process = false;
    DevicePeaks* counts = nullptr;
  };
  struct Read {
    std::string clock;  ///< recordings with the same clock have comparable times
    std::uint64_t started_ns = 0;
    std::uint64_t read_ns = 0;     ///< all earlier data was added, except late data
    std::uint64_t left_at_ns = 0;  ///< time up to which it was read when it stopped being counted
    bool counts = false;
    std::map<std::int8_t, Held> held;
    std::vector<Sampled> devices;  ///< by SampledDeviceId
  };
  struct Tracked {
    std::string clock;
    std::string uuid;
    bool operator<(const Tracked& other) const {
      return clock != other.clock ? clock < other.clock : uuid < other.uuid;
    }
  };

  struct Taker;

  void add(Recording recording, Read& read, const Event& event);
  void add(Recording recording, Read& read, const SampleRecord& record);
  static void report(Recording recording, const Read& read, const Held& held);
  /// Connects the program's memory with its devices.
  void connect(Recording recording, Read& read);
  void disconnect(Recording recording, Read& read);

  Recording next_ = 1;
  std::map<Recording, Read> read_;
  std::map<Tracked, DevicePeaks> peaks_;
};

/// Bytes of a device, by the values of the enumerations. std::nullopt: never any memory. 0: none now.
struct RecordedOwners {
  Device device;
  std::array<std::optional<std::uint64_t>, std::size(kCategoryNames)> categories = {};
  std::array<std::optional<std::uint64_t>, std::size(kComponentNames)> components = {};
};

/// Replaces the values of `owners` by the live memory at the end of a recording, or of its window. The categories of a
/// device add up to its allocator's total, and so do the components. Memory of the driver is left out. No effect if the
/// recording has no attribution.
void add_up_owners(std::vector<RecordedOwners>& owners, const AttributedStore& store);

}  // namespace tidemark
