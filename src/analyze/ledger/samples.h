// Selects samples for ledgers in a single pass over samples and events, either of a file while it is read or of a Store
// (see replay.h).
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

/// The processes of a device at one time, and the recorded process's known memory at that time.
struct ProcessList {
  DeviceProcessesSample sample;
  HeldMemory held;
};

/// The lists before and after a time.
struct NearestLists {
  std::shared_ptr<const ProcessList> latest;  ///< the last list that is not after it; may be null
  std::shared_ptr<const ProcessList> next;    ///< the first after it; may be null
};

/// A device at one time: input of a ledger.
struct LedgerInput {
  std::uint64_t time_ns = 0;
  std::optional<std::uint64_t> used_bytes;  ///< as sampled; nullopt: there is no sample of that time
  HeldMemory held;
  std::shared_ptr<const NearestLists> lists;  ///< shared by all inputs between the same two lists; null: not sampled
  bool during_driver_call = false;            ///< a slow call was under way: `held` and `used_bytes` may disagree
};

/// Selects samples in addition to the peak.
struct LedgerQuery {
  std::optional<std::uint64_t> at_ns;     ///< selects the last sample that is not after it; nullopt: not after the last
                                          ///< event
  std::vector<std::uint64_t> stretch_ns;  ///< by SampledDeviceId: selects the highest sample of each stretch of this
                                          ///< length; empty or 0: none
};

/// The selected samples of one device. Samples without used bytes are ignored.
struct DeviceSamples {
  SampledDevice device;
  bool lists_process = false;  ///< whether the driver listed the recorded process at some time
  /// The first sample with the maximum of used bytes, among those not covered by a slow driver call: its used bytes
  /// match the events of the same time.
  std::optional<LedgerInput> peak;
  std::optional<std::uint64_t> transient_peak_bytes;  ///< maximum of used bytes at covered samples, if more than at the
                                                      ///< peak
  std::optional<LedgerInput> last;                    ///< selected by LedgerQuery::at_ns
  std::optional<LedgerInput> after;                   ///< without at_ns: the first after the last event
  std::vector<LedgerInput> over_time;                 ///< selected by LedgerQuery::stretch_ns, without covered ones
};

/// The first sample with the maximum of used bytes, among those not covered by a slow driver call.
class HighestSample {
 public:
  [[nodiscard]] bool exceeded_by(std::uint64_t used_bytes) const {
    return candidates_.empty() || used_bytes > *candidates_.back().used_bytes;
  }
  /// A sample that exceeds this one.
  void add(const LedgerInput& input);
  /// Calls are reported only after the samples that they cover.
  void drop_covered(const SlowDriverCall& call);
  /// The maximum of used bytes of the dropped samples.
  [[nodiscard]] std::uint64_t covered_bytes() const { return covered_bytes_; }
  /// nullopt if there was none, or all are covered.
  [[nodiscard]] std::optional<LedgerInput> take() &&;

 private:
  std::vector<LedgerInput> candidates_;  // each with more used bytes than all before it; the latest of them
  std::uint64_t covered_bytes_ = 0;
};

/// Not thread-safe. Memory grows with devices, stretches and simultaneous driver allocations, not with samples.
class LedgerCollector {
 public:
  explicit LedgerCollector(LedgerQuery query = {}) : query_(std::move(query)) {}

  /// As SampleConsumer.
  void add(const SampleRecord& record, const EventsSoFar& events);
  /// A device at a time without a sample, from everything added so far. `device`: by SampledDeviceId; nullopt: a device
  /// that is not sampled.
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
    std::uint64_t stretch_ns = 0;  // 0: not selected
    std::uint64_t sample_ns = 0;   // of the latest, so that times never decrease
    std::uint64_t list_ns = 0;     // the same for lists
  };

  void add(const SampledDevice& device);
  void add(const DeviceSample& sample, const EventsSoFar& events);
  void add(const DeviceProcessesSample& sample, const EventsSoFar& events);
  void add(const SlowDriverCall& call);
  /// Finalizes the latest sample as the last one if it is not after the query's time, or as the first one after it.
  void settle(Track& track, std::optional<std::uint64_t> last_event_ns) const;

  LedgerQuery query_;
  std::vector<Track> tracks_;
};

/// An Overview with the samples that were selected while the file was read.
struct SampledOverview : Overview {
  std::vector<DeviceSamples> samples;  ///< by SampledDeviceId; empty if none were taken
  HostUsage host;
  HostLedgers host_ledgers;
  /// For data that an overview does not contain: reads the file again if it was not kept.
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
