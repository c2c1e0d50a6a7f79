// The single pass over the events: totals of each device, and the memory of each stack at the peak.
//
// Memory grows with devices, stacks and blocks alive at one time, not with events; every event costs O(1). The stacks
// at the peak are kept without copying them at each new peak: a stack's share is saved only when it first changes after
// a peak (identified by the peak's number), so unchanged stacks still have their value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"
#include "trace/event.h"

namespace tidemark {

/// Not thread-safe. Takes events in order, as TraceReader gives them.
class Tally final : public EventsSoFar {
 public:
  Tally();

  /// Effect of an event, for consumers that keep more than totals.
  struct Effect {
    enum class Kind : std::uint8_t { none, birth, death };
    Kind kind = Kind::none;
    std::uint8_t device = 0;
    bool totals_changed = false;  ///< `unrecorded` or `reserved` of the device differ from before
    std::uint64_t time_ns = 0;
  };

  Effect add(const Event& event);
  /// The same for a request that failed.
  Effect add_out_of_memory(const Event& event, const OutOfMemoryDetails& details);

  [[nodiscard]] HeldMemory held() const override;
  [[nodiscard]] std::optional<std::uint64_t> last_event_ns() const override {
    return overview_.event_count == 0 ? std::nullopt : std::optional(now_ns_);
  }

  /// Blocks added so far were there before the first event: they are no allocations of this recording.
  void begin();

  /// The allocator's totals changed, with the latest event of the device or without one. The time as in Event. An
  /// effect without a birth or death.
  Effect add_totals(Device device, std::uint64_t time_ns, const AllocatorTotals& totals);

  /// Allocated minus recorded live bytes, and reserved bytes, of a device with totals.
  [[nodiscard]] std::int64_t unrecorded(std::uint8_t device) const {
    return static_cast<std::int64_t>(running_[device].unrecorded);
  }
  [[nodiscard]] std::uint64_t reserved(std::uint8_t device) const { return running_[device].reserved; }
  /// Active minus allocated.
  [[nodiscard]] std::uint64_t pending(std::uint8_t device) const { return running_[device].pending; }

  /// Index of a device, which is added if it is new; nullopt beyond kMaxDevices.
  std::optional<std::uint8_t> find_device(Device device);
  /// Time of the latest event.
  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }

  /// Result of the pass so far; `definitions` are the recording's up to now.
  [[nodiscard]] Overview so_far(std::string path, Definitions definitions) const {
    return Tally(*this).finish(std::move(path), std::move(definitions));
  }
  /// Ends the pass. `definitions` are the complete ones of the recording.
  Overview finish(std::string path, Definitions definitions) &&;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Running {
    std::uint64_t recorded = 0;    // live recorded bytes
    std::uint64_t unrecorded = 0;  // modulo 2^64, so that recorded + unrecorded is always the allocator's total
    std::uint64_t reserved = 0;
    std::uint64_t pending = 0;
    std::uint64_t live_count = 0;
    std::uint32_t peaks = 0;  // number of the latest peak
    bool seen_totals = false;
    bool knows_active = false;
  };

  // Memory of one stack on one device now, and at the peak numbered `peak`.
  struct Usage {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t peak_blocks = 0;
    std::uint32_t peak = 0;
    std::uint32_t next = kNone;  // the same stack on another device
    StackId stack;
    std::uint8_t device = 0;
  };

  // Index of the device, or kMaxDevices when there are too many.
  std::size_t device_index(Device device);
  std::uint32_t usage_index(StackId stack, std::uint8_t device);
  static void save_peak(Usage& usage, std::uint32_t peak);
  bool take_totals(const Event& event, std::uint8_t device);
  bool take_reserved(std::uint64_t reserved, std::uint8_t device);
  void take_peak(std::uint8_t device);
  void end_pause();

  Overview overview_;
  std::vector<Running> running_;               // by device
  std::vector<std::uint16_t> device_table_;    // by (type, index) as two bytes; kMaxDevices = not seen yet
  std::vector<std::uint32_t> usage_of_stack_;  // by stack id + 1: first entry of usages_
  std::vector<Usage> usages_;
  std::vector<std::uint32_t> usage_of_slot_;
  std::vector<std::uint32_t> driver_usages_;  // usages on devices of the driver
  std::uint64_t now_ns_ = 0;
  std::uint64_t live_changes_ = 0;
  std::uint64_t ignored_ = 0;  // events of devices beyond kMaxDevices
  bool paused_ = false;
};

}  // namespace tidemark
