// What recordings know of each device: the most that was used of it between its samples, and whose the memory of a
// recorded process is now, by category and component: what metrics tell of it.
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

/// The most that was used of a device in a while; see DevicePeaks.
struct RecordedPeak {
  std::string uuid;  ///< of the device or MIG instance
  std::uint64_t bytes = 0;
};

/// Events and samples of a recording have one clock, so a process's memory at the time of a sample is known; so has a
/// recorder with several processes. Recordings of different recorders are not added up: what the others take counts as
/// what else uses the device.
///
/// A process has what it took from the CUDA driver, where the recording knows that; else what its allocator has
/// reserved, of which it has what is allocated for sure: when cached segments are released, nobody tells. Of a device
/// without a UUID, and of a process that the driver lists on another device only, nothing is known.
///
/// Not thread-safe. Memory is bounded by the recordings that are followed.
class RecordedPeaks {
 public:
  using Recording = DevicePeaks::Process;

  /// A recording is read from now on. `recorder`: who writes it; `started_ns`: the recording's time 0 on its
  /// recorder's clock, where that is known.
  [[nodiscard]] Recording begin(const std::string& recorder, const std::string& path,
                                std::optional<std::uint64_t> started_ns);
  /// Batches in the order of the recording.
  void add(Recording recording, const FollowedBatch& batch);
  /// What was recorded before watching began has been added: what comes now counts. Again and again.
  void caught_up(Recording recording);
  /// Nothing more comes of it; what does is passed over.
  void end(Recording recording);

  /// What was found since the last call. Looks at what is half a second old or more, for what is written late.
  [[nodiscard]] std::vector<RecordedPeak> take();

 private:
  /// What the program has of its device of one number.
  struct Held {
    std::uint64_t allocated_bytes = 0;
    std::uint64_t reserved_bytes = 0;
    std::optional<std::uint64_t> driver_bytes;  ///< that it took from the driver; none: not recorded
    DevicePeaks* counts = nullptr;              ///< where; null: not now
  };
  struct Sampled {
    std::string uuid;
    std::optional<std::int8_t> index;  ///< by which the program knows it
    bool lists_process = false;
    DevicePeaks* counts = nullptr;
  };
  struct Read {
    std::string clock;  ///< recordings with the same one have their times in common
    std::uint64_t started_ns = 0;
    std::uint64_t read_ns = 0;     ///< up to which all was added, but for what is late
    std::uint64_t left_at_ns = 0;  ///< up to which it was read when it was counted no more
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
  /// Connects what the program has with the devices that it is of.
  void connect(Recording recording, Read& read);
  void disconnect(Recording recording, Read& read);

  Recording next_ = 1;
  std::map<Recording, Read> read_;
  std::map<Tracked, DevicePeaks> peaks_;
};

/// Bytes of a device, by the values of the enumerations. None: nothing was ever of it. What was, and is not now, is 0.
struct RecordedOwners {
  Device device;
  std::array<std::optional<std::uint64_t>, std::size(kCategoryNames)> categories = {};
  std::array<std::optional<std::uint64_t>, std::size(kComponentNames)> components = {};
};

/// Replaces what `owners` says by what is alive at the end of a recording, or of its window. The categories of a device
/// add up to what its allocator holds, and so do the components. Memory of the driver is left out. Nothing where the
/// recording has no attribution.
void add_up_owners(std::vector<RecordedOwners>& owners, const AttributedStore& store);

}  // namespace tidemark
