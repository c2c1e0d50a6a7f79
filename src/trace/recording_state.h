// State for a reader of events to start at a place of a recording: the live blocks, and the values from which the next
// ones are predicted. A frame of it lets a reader begin in the middle (docs/format.md, "State frame").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/event_state.h"
#include "trace/frames.h"

namespace tidemark {

struct RecordingState {
  struct OnDevice {
    Device device;
    bool has_totals = false;
    std::uint64_t allocated = 0;
    std::uint64_t reserved = 0;
  };
  /// A live block, as it was allocated. Ids as in Event.
  struct Block {
    std::uint32_t slot = 0;
    std::uint32_t device = 0;  ///< into devices
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t time_ns = 0;
    StackId stack;
    ThreadId thread;
    std::uint64_t sequence = 0;
    AutogradNodeId node;
    std::uint64_t node_sequence = 0;
  };

  // As EventState has them.
  std::uint64_t time_ns = 0;
  std::uint32_t thread_code = 0;
  std::uint32_t device = 0;  ///< into devices
  std::uint32_t freed_slot = 0;
  std::uint64_t allocated_at = 0;
  std::uint64_t sequence = 0;
  std::uint64_t node_sequence = 0;
  bool paused = false;  ///< the program has switched recording off, and not on again
  std::vector<OnDevice> devices;
  std::vector<Block> blocks;  ///< by slot
  EventState::ExpectedAddresses expected{};
  EventState::RecentAddresses recent{};

  /// The initial events of a recording without earlier data (docs/format.md, "Windows").
  [[nodiscard]] std::vector<Event> lead_in() const;
};

/// Whether a frame may contain this number of blocks with slots below `slots`.
[[nodiscard]] bool fits_in_state_frame(std::size_t blocks, std::size_t slots);
/// Appends a state frame to `out`. The state must fit in one.
void append_state_frame(const RecordingState& state, FrameEncoder& frames, std::vector<std::byte>& out);

/// nullopt for invalid data. `payload` must have Frame::kPadding readable bytes after it.
[[nodiscard]] std::optional<RecordingState> decode_state(std::span<const std::uint8_t> payload,
                                                         const DefinedIds& defined);

}  // namespace tidemark
