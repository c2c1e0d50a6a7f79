// Packs events into the columns of an events frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trace/address_map.h"
#include "trace/event.h"
#include "trace/event_state.h"
#include "trace/format.h"
#include "trace/frame_encoder.h"

namespace tidemark {

/// Not thread-safe. Memory: the columns of one frame (touched as they fill), and 40 to 72 bytes a live block.
class EventEncoder {
 public:
  EventEncoder();

  /// Adds an event, and before it a free of the old block when it allocates at an address still alive. There must be
  /// room. Ids in the event must be defined or none; `slot`, and `size` of a free, are ignored.
  void add(const Event& event);

  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// One call of add() may make two events.
  [[nodiscard]] bool has_room() const { return count_ + 2 <= format::kMaxFrameEvents; }
  /// Of the payload so far, before compression.
  [[nodiscard]] std::size_t payload_bytes() const;

  /// Appends the frame to `out` and starts the next one.
  void append_frame(FrameEncoder& frames, std::vector<std::byte>& out);

 private:
  /// How many columns the frame needs: those at the end that hold nothing but 0 are left out.
  [[nodiscard]] std::size_t column_count() const;

  struct Buffer {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::uint8_t* end = nullptr;
  };
  void put(format::Column column, std::uint64_t value);
  void put_address(std::uint64_t address, std::uint64_t size);
  void put_attribution(const Event& event);
  void add_allocation(const Event& event, std::uint32_t device);
  void add_free_of(std::uint32_t slot, const Event& event, std::uint32_t device, bool totals_known);
  void begin(const Event& event, format::TagKind kind, std::uint8_t flags);
  std::uint8_t device_flag(std::uint32_t device);
  std::uint8_t totals_flags(const Event& event, std::uint32_t device, std::uint64_t grown_by);

  EventState state_;
  AddressMap live_;
  std::array<Buffer, format::kColumnCount> columns_;
  std::size_t count_ = 0;
  bool has_sequences_ = false;  ///< the frame under way: a number that is not 0
  bool has_nodes_ = false;
};

}  // namespace tidemark
