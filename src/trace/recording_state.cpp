#include "trace/recording_state.h"

#include <algorithm>
#include <utility>

#include "trace/record_fields.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kPaused = 1;
constexpr std::uint64_t kTotalsOnDevice = 1;
// Two signed bytes name a device.
constexpr std::uint64_t kMaxStateDevices = 1 << 16;

constexpr std::uint32_t id_code_of(std::uint32_t id) {
  return id + 1;
}  // none is 0

using Column = std::vector<std::uint8_t>;

/// `value(block)` of each, as varints.
template <typename Items, typename Value>
Column column_of(const Items& items, const Value& value) {
  Column column;
  FieldWriter out(column);
  for (const auto& item : items) out.number(value(item));
  return column;
}

/// `value(block)` of each, as its difference from the one before.
template <typename Items, typename Value>
Column differences_of(const Items& items, const Value& value) {
  std::uint64_t before = 0;
  return column_of(items, [&](const auto& item) {
    const std::uint64_t last = std::exchange(before, value(item));
    return delta_code(last, before);
  });
}

constexpr auto kItself = [](std::uint64_t value) { return value; };

}  // namespace

bool fits_in_state_frame(std::size_t blocks, std::size_t slots) {
  return blocks <= format::kMaxStateBlocks && slots <= format::kMaxStateSlots;
}

// Payload of a state frame (v = varint, z = zig-zag varint; a difference is that to the one before, at first 0):
//
//   v flags | v time | v thread + 1 | v current device | v last freed slot | v address of the last allocation |
//   v sequence | v node sequence | v devices | for each: z type | z index | v flags | v allocated | v reserved |
//   v blocks | twelve columns, each v length and so many bytes
//
// Columns, one number for each block, in the order of slots:
//
//   v slot - slot before | v device | z address, difference | v size | v stack + 1 | z time, difference |
//   v thread + 1 | z sequence, difference | v node + 1 | z node sequence, difference
//
// and of the tables, one for each entry: z expected address, difference | z recent address, difference. The columns
// are kept apart for the compressor, as those of events are.
void append_state_frame(const RecordingState& state, FrameEncoder& frames, std::vector<std::byte>& out) {
  using Block = RecordingState::Block;
  std::vector<std::uint8_t> head;
  FieldWriter fields(head);
  fields.number(state.paused ? kPaused : 0).number(state.time_ns).number(state.thread_code).number(state.device);
  fields.number(state.freed_slot).number(state.allocated_at).number(state.sequence).number(state.node_sequence);
  fields.number(state.devices.size());
  for (const RecordingState::OnDevice& on : state.devices) {
    fields.integer(static_cast<std::int8_t>(on.device.type)).integer(on.device.index);
    fields.number(on.has_totals ? kTotalsOnDevice : 0).number(on.allocated).number(on.reserved);
  }
  fields.number(state.blocks.size());
  std::uint64_t slot_before = 0;
  const Column columns[] = {
      column_of(state.blocks, [&](const Block& of) { return of.slot - std::exchange(slot_before, of.slot); }),
      column_of(state.blocks, [](const Block& of) { return of.device; }),
      differences_of(state.blocks, [](const Block& of) { return of.address; }),
      column_of(state.blocks, [](const Block& of) { return of.size; }),
      column_of(state.blocks, [](const Block& of) { return id_code_of(of.stack.value); }),
      differences_of(state.blocks, [](const Block& of) { return of.time_ns; }),
      column_of(state.blocks, [](const Block& of) { return id_code_of(of.thread.value); }),
      differences_of(state.blocks, [](const Block& of) { return of.sequence; }),
      column_of(state.blocks, [](const Block& of) { return id_code_of(of.node.value); }),
      differences_of(state.blocks, [](const Block& of) { return of.node_sequence; }),
      differences_of(state.expected, kItself),
      differences_of(state.recent, kItself)};
  std::array<Column, std::size(columns)> lengths;
  std::vector<ByteSpan> parts = {head};
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    lengths[n] = column_of(std::array{columns[n].size()}, kItself);
    parts.emplace_back(lengths[n]);
    parts.emplace_back(columns[n]);
  }
  frames.append(format::FrameType::state, parts, out);
}

std::optional<RecordingState> decode_state(std::span<const std::uint8_t> payload, const DefinedIds& defined) {
  FieldReader in(payload);
  RecordingState state;
  state.paused = (in.number() & kPaused) != 0;
  state.time_ns = in.number();
  state.thread_code = id_code_of(in.id(defined.threads));
  const std::uint64_t device = in.number();
  const std::uint64_t freed_slot = in.number();
  state.allocated_at = in.number();
  state.sequence = in.number();
  state.node_sequence = in.number();
  const std::uint64_t devices = in.number();
  if (devices > kMaxStateDevices || device >= devices || freed_slot > SlotId::kNone) return std::nullopt;
  state.device = static_cast<std::uint32_t>(device);
  state.freed_slot = static_cast<std::uint32_t>(freed_slot);
  for (std::uint64_t n = 0; n < devices && in.ok(); ++n) {
    RecordingState::OnDevice& on = state.devices.emplace_back();
    on.device.type = static_cast<DeviceType>(in.integer());
    on.device.index = static_cast<std::int8_t>(in.integer());
    on.has_totals = (in.number() & kTotalsOnDevice) != 0;
    on.allocated = in.number();
    on.reserved = in.number();
  }
  const std::uint64_t count = in.number();
  if (!in.ok() || count > format::kMaxStateBlocks || count > payload.size()) return std::nullopt;
  state.blocks.resize(static_cast<std::size_t>(count));
  // `take(column, item)` of each.
  const auto column = [&in](auto& items, const auto& take) {
    FieldReader of(in.bytes());
    for (auto& item : items) take(of, item);
    in.require(of.ok() && of.at_end());
  };
  const auto differences = [&column](auto& items, const auto& place) {
    std::uint64_t before = 0;
    column(items, [&](FieldReader& of, auto& item) { place(item) = before = apply_delta(before, of.number()); });
  };
  using Block = RecordingState::Block;
  std::uint64_t slot = 0;
  column(state.blocks, [&](FieldReader& of, Block& block) {
    const std::uint64_t step = of.number();
    of.require(step < format::kMaxStateSlots && (step > 0 || &block == &state.blocks.front()));
    slot += step;
    of.require(slot < format::kMaxStateSlots);
    block.slot = static_cast<std::uint32_t>(slot);
  });
  column(state.blocks, [&](FieldReader& of, Block& block) {
    const std::uint64_t on = of.number();
    of.require(on < devices);
    block.device = static_cast<std::uint32_t>(on);
  });
  differences(state.blocks, [](Block& block) -> std::uint64_t& { return block.address; });
  column(state.blocks, [](FieldReader& of, Block& block) { block.size = of.number(); });
  column(state.blocks, [&](FieldReader& of, Block& block) { block.stack.value = of.id(defined.stacks); });
  differences(state.blocks, [](Block& block) -> std::uint64_t& { return block.time_ns; });
  column(state.blocks, [&](FieldReader& of, Block& block) { block.thread.value = of.id(defined.threads); });
  differences(state.blocks, [](Block& block) -> std::uint64_t& { return block.sequence; });
  column(state.blocks, [&](FieldReader& of, Block& block) { block.node.value = of.id(defined.nodes); });
  differences(state.blocks, [](Block& block) -> std::uint64_t& { return block.node_sequence; });
  const auto itself = [](std::uint64_t& value) -> std::uint64_t& { return value; };
  differences(state.expected, itself);
  differences(state.recent, itself);
  return in.ok() ? std::optional(std::move(state)) : std::nullopt;
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
