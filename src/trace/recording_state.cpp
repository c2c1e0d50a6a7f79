#include "trace/recording_state.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "trace/record_fields.h"

namespace tidemark {
namespace {

using Block = RecordingState::Block;

/// Does columns.add() with each column behind the head of the frame. The state is const for a writer.
template <typename Columns, typename State>
void visit_columns(Columns& columns, State& state) {
  const auto plain = [&](auto member) {
    columns.add([&](auto& column) {
      for (auto& block : state.blocks) column.field(block.*member);
    });
  };
  const auto differences = [&](auto& items, auto member) {
    columns.add([&](auto& column) {
      std::uint64_t before = 0;
      for (auto& item : items) {
        auto& value = std::invoke(member, item);
        column.difference(before, value);
        before = value;
      }
    });
  };
  columns.add([&](auto& column) {
    std::uint32_t before = 0;
    for (auto& block : state.blocks) {
      column.increase(before, block.slot);
      before = block.slot;
    }
  });
  plain(&Block::device);
  differences(state.blocks, &Block::address);
  plain(&Block::size);
  plain(&Block::stack);
  differences(state.blocks, &Block::time_ns);
  plain(&Block::thread);
  differences(state.blocks, &Block::sequence);
  plain(&Block::node);
  differences(state.blocks, &Block::node_sequence);
  differences(state.expected, std::identity{});
  differences(state.recent, std::identity{});
}

/// Each column and its length are separate: the compressor gets them one by one, as columns of events.
class ColumnWriter {
 public:
  template <typename Put>
  void add(const Put& put) {
    std::vector<std::uint8_t> column;
    FieldWriter fields(column, DefinedIds::any());
    put(fields);
    FieldWriter(parts_.emplace_back()).number(column.size());
    parts_.push_back(std::move(column));
  }
  [[nodiscard]] const std::vector<std::vector<std::uint8_t>>& parts() const { return parts_; }

 private:
  std::vector<std::vector<std::uint8_t>> parts_;
};

class ColumnReader {
 public:
  ColumnReader(FieldReader& payload, const DefinedIds& defined) : payload_(payload), defined_(defined) {}

  template <typename Take>
  void add(const Take& take) {
    FieldReader fields(payload_.bytes(), defined_);
    take(fields);
    payload_.require(fields.ok() && fields.at_end());
  }

 private:
  FieldReader& payload_;
  const DefinedIds& defined_;
};

bool is_sound(const RecordingState& state, const DefinedIds& defined) {
  const auto is_ascending = [](const Block& a, const Block& b) { return a.slot < b.slot; };
  const auto is_possible = [&](const Block& block) {
    return block.device < state.devices.size() && block.slot < format::kMaxStateSlots;
  };
  return state.device < state.devices.size() && state.thread_code <= defined.threads &&
         std::ranges::all_of(state.blocks, is_possible) &&
         std::ranges::adjacent_find(state.blocks, std::not_fn(is_ascending)) == state.blocks.end();
}

}  // namespace

bool fits_in_state_frame(std::size_t blocks, std::size_t slots) {
  return blocks <= format::kMaxStateBlocks && slots <= format::kMaxStateSlots;
}

void append_state_frame(const RecordingState& state, FrameEncoder& frames, std::vector<std::byte>& out) {
  std::vector<std::uint8_t> head;
  FieldWriter fields(head);
  fields.field(state);
  fields.number(state.blocks.size());
  ColumnWriter columns;
  visit_columns(columns, state);
  std::vector<ByteSpan> parts = {head};
  parts.insert(parts.end(), columns.parts().begin(), columns.parts().end());
  frames.append(format::FrameType::state, parts, out);
}

std::optional<RecordingState> decode_state(std::span<const std::uint8_t> payload, const DefinedIds& defined) {
  FieldReader fields(payload);
  RecordingState state;
  fields.field(state);
  const std::uint64_t count = fields.number();
  if (!fields.ok() || count > format::kMaxStateBlocks || count > payload.size()) return std::nullopt;
  state.blocks.resize(static_cast<std::size_t>(count));
  ColumnReader columns(fields, defined);
  visit_columns(columns, state);
  return fields.ok() && is_sound(state, defined) ? std::optional(std::move(state)) : std::nullopt;
}

std::vector<Event> RecordingState::lead_in() const {
  std::vector<const Block*> by_time;
  by_time.reserve(blocks.size());
  for (const Block& block : blocks) by_time.push_back(&block);
  std::ranges::stable_sort(by_time, {}, &Block::time_ns);
  std::vector<const Block*> last(devices.size(), nullptr);  // of each device: it has the totals
  for (const Block* block : by_time) last[block->device] = block;
  std::vector<Event> events;
  events.reserve(blocks.size() + 3);
  events.emplace_back().kind = EventKind::pause;
  for (const Block* block : by_time) {
    const OnDevice& on = devices[block->device];
    Event& event = events.emplace_back();
    event.time_ns = std::min(block->time_ns, time_ns);
    event.address = block->address;
    event.size = block->size;
    event.slot.value = block->slot;
    event.stack = block->stack;
    event.thread = block->thread;
    event.node = block->node;
    event.node_sequence = block->node_sequence;
    event.sequence = block->sequence;
    event.device = on.device;
    if (last[block->device] != block || !on.has_totals) continue;
    event.has_totals = true;
    event.total_allocated = on.allocated;
    event.total_reserved = on.reserved;
  }
  for (const EventKind kind : {EventKind::resume, EventKind::pause}) {
    if (kind == EventKind::pause && !paused) break;
    Event& event = events.emplace_back();
    event.kind = kind;
    event.time_ns = time_ns;
  }
  return events;
}

}  // namespace tidemark
