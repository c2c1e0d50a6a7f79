// Unpacks the columns of events frames: the mirror of event_encoder.h, where the layout is drawn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/event_state.h"

namespace tidemark {

/// Not thread-safe. Frames must come in the order of the file: each builds on the state after the one before.
class EventDecoder {
 public:
  /// Replaces `batch` by the frame's events, whose ids are all in `definitions`. `payload` must have Frame::kPadding
  /// readable bytes behind it. The error says what is wrong with it, without file and offset; after an error the
  /// decoder cannot go on.
  Result<void> decode(std::span<const std::uint8_t> payload, const Definitions& definitions, std::vector<Event>& batch);

  /// Goes on behind a state frame, whatever was decoded before. Replaces `batch` by what a recording begins with that
  /// knows nothing else of the time before. The payload and errors as those of decode().
  Result<void> begin_at_state(std::span<const std::uint8_t> payload, const Definitions& definitions,
                              std::vector<Event>& batch);

 private:
  struct Columns;
  /// How many there are of what events refer to.
  struct Defined {
    std::uint32_t stacks;
    std::uint32_t threads;
    std::uint32_t nodes;
  };
  bool decode_event(Columns& columns, const Defined& defined, Event& out);
  bool decode_stack(Columns& columns, const Defined& defined, Event& event);
  bool decode_address(Columns& columns, Event& event);
  void decode_totals(Columns& columns, std::uint8_t tag, std::uint64_t grown_by, std::uint32_t device, Event& event);
  void decode_device(Columns& columns, std::uint8_t tag);

  EventState state_;
};

}  // namespace tidemark
