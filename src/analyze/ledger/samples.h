// Chooses the samples that ledgers are made from while samples and events go by: those of a file that is being read, or
// of a Store (see replay.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "analyze/ledger/host_ledger.h"
#include "analyze/timeline/host_timeline.h"
#include "analyze/usage/breakdown.h"
#include "base/result.h"
#include "store/held_memory.h"
#include "store/store.h"
#include "trace/sample.h"

namespace tidemark {

/// The processes of a device at one time, and what the recorded one held by its own events then.
struct ProcessList {
  DeviceProcessesSample sample;
  HeldMemory held;
};

/// The lists before and after a time.
struct NearestLists {
  std::shared_ptr<const ProcessList> latest;  ///< the last that is not after it; may be null
  std::shared_ptr<const ProcessList> next;    ///< the first after it; may be null
};

/// A device at one time: what a ledger is made from.
struct LedgerInput {
  std::uint64_t time_ns = 0;
  std::optional<std::uint64_t> used_bytes;  ///< as sampled; none: there is no sample of that time
  HeldMemory held;
  std::shared_ptr<const NearestLists> lists;  ///< shared by all inputs between the same two lists; null: not sampled
  bool during_driver_call = false;            ///< a slow call was under way: `held` and `used_bytes` may disagree
};

/// Which samples are wanted beside the peak.
struct LedgerQuery {
  std::optional<std::uint64_t> at_ns;     ///< the last sample that is not after it; none: not after the last event
  std::vector<std::uint64_t> stretch_ns;  ///< by SampledDeviceId: the highest sample of each stretch of this length;
                                          ///< empty or 0: none
};

/// The chosen samples of one device. Those without used bytes do not count.
struct DeviceSamples {
  SampledDevice device;
  bool lists_process = false;  ///< whether the driver listed the recorded process at some time
  /// The first sample with the most used bytes of those that no slow call of the driver covers: what is used then
  /// belongs to the events of the same time.
  std::optional<LedgerInput> peak;
  std::optional<std::uint64_t> transient_peak_bytes;  ///< used at a covered sample, where that is more than at the peak
  std::optional<LedgerInput> last;                    ///< as LedgerQuery::at_ns says
  std::optional<LedgerInput> after;                   ///< without at_ns: the first after the last event
  std::vector<LedgerInput> over_time;                 ///< as LedgerQuery::stretch_ns says, covered ones left out
};

/// The first sample with the most used bytes of those that no slow call of the driver covers.
class HighestSample {
 public:
  [[nodiscard]] bool exceeded_by(std::uint64_t used_bytes) const {
    return candidates_.empty() || used_bytes > *candidates_.back().used_bytes;
  }
  /// A sample that exceeds this one.
  void add(const LedgerInput& input);
  /// Calls are known only after the samples that they cover.
  void drop_covered(const SlowDriverCall& call);
  /// The most used bytes of those that were dropped.
  [[nodiscard]] std::uint64_t covered_bytes() const { return covered_bytes_; }
  /// None where there was none, or all are covered.
  [[nodiscard]] std::optional<LedgerInput> take() &&;

 private:
  std::vector<LedgerInput> candidates_;  // each with more used bytes than all before it; the latest of them
  std::uint64_t covered_bytes_ = 0;
};

/// Not thread-safe. Memory grows with devices, stretches and with what the driver allocated at one time, not with
/// samples.
class LedgerCollector {
 public:
  explicit LedgerCollector(LedgerQuery query = {}) : query_(std::move(query)) {}

  /// As SampleConsumer.
  void add(const SampleRecord& record, const EventsSoFar& events);
  /// A device at a time without a sample, after all that was added until then. `device`: by SampledDeviceId; none: a
  /// device that is not sampled.
  [[nodiscard]] LedgerInput without_sample(std::uint64_t time_ns, std::optional<std::size_t> device,
                                           const EventsSoFar& events) const;
  /// By SampledDeviceId. `last_event_ns`: of all events.
  [[nodiscard]] std::vector<DeviceSamples> finish(std::optional<std::uint64_t> last_event_ns) &&;

 private:
  struct Stretch {
    std::uint64_t number = 0;
    HighestSample highest;
  };
  struct Track {
    DeviceSamples samples;
    HighestSample highest;
    std::vector<Stretch> stretches;
    std::optional<LedgerInput> latest;
    std::shared_ptr<NearestLists> lists = std::make_shared<NearestLists>();
    std::uint64_t stretch_ns = 0;  // 0: none are wanted
    std::uint64_t sample_ns = 0;   // of the latest, so that times never decrease
    std::uint64_t list_ns = 0;     // likewise of lists
  };

  void add(const SampledDevice& device);
  void add(const DeviceSample& sample, const EventsSoFar& events);
  void add(const DeviceProcessesSample& sample, const EventsSoFar& events);
  void add(const SlowDriverCall& call);
  /// Makes the latest sample the last one that counts, where it is not after the query's time, or the first one after.
  void settle(Track& track, std::optional<std::uint64_t> last_event_ns) const;

  LedgerQuery query_;
  std::vector<Track> tracks_;
};

/// An Overview, and what was made of the samples while it was read.
struct SampledOverview : Overview {
  std::vector<DeviceSamples> samples;  ///< by SampledDeviceId; empty where none were taken
  HostUsage host;
  HostLedgers host_ledgers;
  /// For what an overview does not hold: reads the file again, where that was not kept.
  std::function<Result<std::shared_ptr<const AttributedStore>>()> load_blocks;
  PeakOwners owners;
};

/// All that a SampledOverview has of samples, while they go by. Not thread-safe; a copy is the state so far.
class SampleCollector {
 public:
  /// As SampleConsumer.
  void add(const SampleRecord& record, const EventsSoFar& events);
  /// Fills samples, host and host_ledgers; `overview` has the rest.
  void finish(SampledOverview& overview) &&;

 private:
  LedgerCollector ledgers_;
  HostUsageCollector host_;
  HostLedgerCollector host_ledgers_;
};

}  // namespace tidemark
