// Keeps, while samples and events go by, what a device's ledger needs at its peak and at the end. Memory grows with
// devices and with what the driver handed out at one time, not with samples.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "store/held_memory.h"

namespace tidemark {

/// Not thread-safe. Samples and events come in order of time; of those at the same time, events first.
class MomentKeeper {
 public:
  /// What is held when a sample was taken; asked only when it is needed.
  using Held = std::function<HeldMemory()>;

  /// `last_event_ns`: of the latest event so far; none before the first.
  void add(const SampleRecord& record, std::optional<std::uint64_t> last_event_ns, const Held& held);

  /// An event comes that is later than all samples so far: the latest of them are not after the last event.
  void before_event() {
    if (has_pending_) [[unlikely]]
      take_pending();
  }

  /// By SampledDeviceId.
  [[nodiscard]] std::vector<DeviceMoments> finish() &&;

 private:
  struct Running {
    DeviceMoments moments;
    std::vector<DeviceMoment> highs;           // each with more used bytes than all before it; the latest of them
    std::uint64_t covered_bytes = 0;           // the most used at covered samples
    std::optional<ProcessesMoment> processes;  // the latest
    std::optional<DeviceMoment> pending;       // after the last event so far
    std::uint64_t sample_ns = 0;               // of the latest, so that times never decrease
    std::uint64_t processes_ns = 0;
  };

  void add_sample(const DeviceSample& sample, std::optional<std::uint64_t> last_event_ns, const Held& held);
  void add_processes(const DeviceProcessesSample& sample, const Held& held);
  void add_slow_call(const SlowDriverCall& call);
  void take_pending();

  std::vector<Running> devices_;
  bool has_pending_ = false;
};

}  // namespace tidemark
