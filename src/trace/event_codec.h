// Events to the columns of an events frame, and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "trace/address_map.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/event_state.h"
#include "trace/format.h"
#include "trace/frames.h"
#include "trace/recording_state.h"
#include "trace/running_totals.h"

namespace tidemark {

/// Not thread-safe. Memory: the columns of one frame (touched as they fill), and 80 to 112 bytes a live block.
class EventEncoder {
 public:
  EventEncoder();

  /// Adds an event, preceded by a free of the old block if it allocates at an address still alive. There must be room.
  /// Ids in the event must be defined or none; `slot`, and `size` of a free, are ignored.
  void add(const Event& event);

  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// One call of add() may make two events.
  [[nodiscard]] bool has_room() const { return count_ + 2 <= format::kMaxFrameEvents; }
  /// Size of the payload so far, before compression.
  [[nodiscard]] std::size_t payload_bytes() const;

  /// Appends the frame to `out` and starts the next one.
  void append_frame(FrameEncoder& frames, std::vector<std::byte>& out);

  /// Between two frames of events: appends a frame of totals so far and, if due, a frame of the state. Readers can then
  /// skip all but the last few events: frames of totals cover format::kMinTotalsEvents events or a little more, and
  /// frames of the state cover enough bytes of events to add only some 3% to them.
  void append_checkpoint(FrameEncoder& frames, std::vector<std::byte>& out);

 private:
  /// Number of columns of the frame: trailing columns with only 0 are left out.
  [[nodiscard]] std::size_t column_count() const;

  struct Buffer {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::uint8_t* end = nullptr;
  };
  void put(format::Column column, std::uint64_t value);
  void put_address(std::uint64_t address, std::uint64_t size);
  void put_attribution(const Event& event);
  void add_allocation(const Event& event, std::uint32_t device);
  void add_without_block(const Event& event, std::uint32_t device, std::uint64_t address);
  void add_free_of(std::uint32_t slot, const Event& event, std::uint32_t device, bool totals_known);
  void begin(const Event& event, format::TagKind kind, std::uint8_t flags);
  void take_live(std::uint32_t device, std::uint64_t live);
  [[nodiscard]] DeviceRunningTotals& running(std::uint32_t device);
  [[nodiscard]] bool is_state_due() const;
  [[nodiscard]] RecordingState state() const;
  std::uint8_t device_flag(std::uint32_t device);
  std::uint8_t totals_flags(const Event& event, std::uint32_t device, std::uint64_t grown_by);

  /// Properties of a live block, by slot, that the state frame contains in addition to EventState.
  struct Origin {
    std::uint64_t time_ns = 0;
    std::uint64_t sequence = 0;
    std::uint64_t node_sequence = 0;
    StackId stack;
    ThreadId thread;
    AutogradNodeId node;
  };

  EventState state_;
  AddressMap live_;
  std::vector<Origin> origins_;
  std::vector<DeviceRunningTotals> running_;  ///< by index of the device
  std::vector<bool> seen_;                    ///< by device: it had blocks or totals
  std::uint64_t untold_events_ = 0;           ///< since the latest frame of totals
  std::uint64_t bytes_since_state_ = 0;       ///< of events frames
  bool paused_ = false;
  std::array<Buffer, format::kColumnCount> columns_;
  std::size_t count_ = 0;
  bool has_sequences_ = false;  ///< in the current frame: a number other than 0
  bool has_nodes_ = false;
};

/// Not thread-safe. Frames must come in the order of the file: each builds on the state after the one before.
class EventDecoder {
 public:
  /// Replaces `batch` by the frame's events; all their ids are in `definitions`. `payload` must have Frame::kPadding
  /// readable bytes after it. The error describes the problem without file and offset; after an error the decoder
  /// cannot continue.
  Result<void> decode(std::span<const std::uint8_t> payload, const Definitions& definitions, std::vector<Event>& batch);

  /// Continues after a state frame, regardless of earlier frames. Replaces `batch` by the initial events of a recording
  /// without earlier data. The payload and errors are as in decode().
  Result<void> begin_at_state(std::span<const std::uint8_t> payload, const Definitions& definitions,
                              std::vector<Event>& batch);

 private:
  struct Columns;
  bool decode_event(Columns& columns, const DefinedIds& defined, Event& out);
  bool decode_stack(Columns& columns, const DefinedIds& defined, Event& event);
  bool decode_address(Columns& columns, Event& event);
  void decode_totals(Columns& columns, std::uint8_t tag, std::uint64_t grown_by, std::uint32_t device, Event& event);
  void decode_device(Columns& columns, std::uint8_t tag);

  EventState state_;
};

}  // namespace tidemark
