#include "trace/event_decoder.h"

#include <array>
#include <optional>
#include <utility>

#include "trace/format.h"
#include "trace/recording_state.h"
#include "trace/varint.h"

namespace tidemark {
namespace {

using format::TagKind;

constexpr std::uint8_t kTotalsDetails = format::kTagAllocated | format::kTagReserved;
constexpr std::uint8_t kTotalsFlags = format::kTagTotals | kTotalsDetails;

/// The flags that mean something for each kind; any other is nonsense. Indexed by the kind's bits.
constexpr std::array<std::uint8_t, 8> kAllowedFlags = {format::kTagThread | format::kTagDevice | kTotalsFlags,
                                                       format::kTagThread | kTotalsFlags,
                                                       format::kTagThread | format::kTagDevice | kTotalsFlags,
                                                       format::kTagThread | format::kTagDevice | kTotalsFlags,
                                                       format::kTagThread,
                                                       format::kTagThread,
                                                       0,
                                                       0};

constexpr bool valid_tag(unsigned tag) {
  const unsigned kind = tag & format::kTagKindMask;
  if (kind > static_cast<unsigned>(TagKind::resume)) return false;
  if ((tag & ~unsigned{format::kTagKindMask} & ~unsigned{kAllowedFlags[kind]}) != 0) return false;
  return (tag & kTotalsDetails) == 0 || (tag & format::kTagTotals) != 0;
}

constexpr auto kValidTag = [] {
  std::array<bool, 256> table{};
  for (unsigned tag = 0; tag < table.size(); ++tag) table[tag] = valid_tag(tag);
  return table;
}();

}  // namespace

/// One read position a column. A read past a column's end gives 0 and sets `overrun`; a varint that runs over the end
/// leaves the position behind it, which finished() sees.
struct EventDecoder::Columns {
  std::array<const std::uint8_t*, format::kColumnCount> at{};
  std::array<const std::uint8_t*, format::kColumnCount> end{};
  bool overrun = false;

  /// Finds the columns in a payload. The number of events, or more than there can be when the payload is nonsense.
  std::uint64_t open(std::span<const std::uint8_t> payload) {
    constexpr std::uint64_t kNonsense = ~std::uint64_t{0};
    const std::uint8_t* next = payload.data();
    const std::uint8_t* const stop = next + payload.size();
    const auto number = [&] { return next < stop ? get_varint(next) : kNonsense; };
    const std::uint64_t count = number();
    const std::uint64_t column_count = number();
    if (column_count < format::kMinColumns || column_count > format::kMaxColumns) return kNonsense;
    std::array<std::uint64_t, format::kMaxColumns> lengths{};
    for (std::size_t n = 0; n < column_count; ++n) lengths[n] = number();
    if (next > stop) return kNonsense;
    // Columns behind those known here are a later version's, and passed over.
    for (std::size_t n = 0; n < column_count; ++n) {
      if (lengths[n] > static_cast<std::uint64_t>(stop - next)) return kNonsense;
      if (n < format::kColumnCount) at[n] = next;
      next += lengths[n];
      if (n < format::kColumnCount) end[n] = next;
    }
    return next == stop ? count : kNonsense;
  }

  std::uint64_t varint(format::Column column) {
    if (at[column] < end[column]) [[likely]]
      return get_varint(at[column]);
    overrun = true;
    return 0;
  }
  /// 0 where the column was left out. It is then empty, so that finished() holds.
  std::uint64_t varint_or_0(format::Column column) { return at[column] == nullptr ? 0 : varint(column); }
  std::uint8_t byte(format::Column column) {
    if (at[column] < end[column]) [[likely]]
      return *at[column]++;
    overrun = true;
    return 0;
  }
  [[nodiscard]] bool finished() const { return !overrun && at == end; }
};

void EventDecoder::decode_device(Columns& columns, std::uint8_t tag) {
  if ((tag & format::kTagDevice) == 0) return;
  const auto type = static_cast<std::int8_t>(columns.byte(format::kDevice));
  const auto index = static_cast<std::int8_t>(columns.byte(format::kDevice));
  state_.device = state_.device_index({static_cast<DeviceType>(type), index});
}

void EventDecoder::decode_totals(Columns& columns, std::uint8_t tag, std::uint64_t grown_by, std::uint32_t device,
                                 Event& event) {
  EventState::DeviceTotals& totals = state_.totals(device);
  event.device = totals.device;
  if ((tag & format::kTagTotals) == 0) return;
  totals.allocated += grown_by;
  if ((tag & format::kTagAllocated) != 0) {
    totals.allocated = apply_delta(totals.allocated, columns.varint(format::kTotals));
  }
  if ((tag & format::kTagReserved) != 0) {
    totals.reserved = apply_delta(totals.reserved, columns.varint(format::kTotals));
  }
  event.has_totals = true;
  event.total_allocated = totals.allocated;
  event.total_reserved = totals.reserved;
}

bool EventDecoder::decode_address(Columns& columns, Event& event) {
  const std::uint64_t code = columns.varint(format::kAddress);
  if (code >= format::kAddressRecent) {
    const std::uint64_t index = code - format::kAddressRecent;
    if (index >= EventState::kRecentAddresses) return false;
    event.address = state_.recent_address(index);
  } else if (code == format::kAddressNew) {
    event.address = apply_delta(state_.allocated_at, columns.varint(format::kAddress));
  } else {
    event.address = state_.expected_address(event.size);
  }
  return true;
}

bool EventDecoder::decode_stack(Columns& columns, const Defined& defined, Event& event) {
  const std::uint64_t stack = columns.varint(format::kStack);
  const std::uint64_t node = columns.varint_or_0(format::kNode);
  if (stack > defined.stacks || node > defined.nodes) return false;
  event.stack.value = static_cast<std::uint32_t>(stack) - 1;  // code 0 is none, which is all ones
  event.node.value = static_cast<std::uint32_t>(node) - 1;
  state_.sequence = apply_delta(state_.sequence, columns.varint_or_0(format::kSequence));
  event.sequence = state_.sequence;
  if (node == 0) return true;
  state_.node_sequence = apply_delta(state_.node_sequence, columns.varint_or_0(format::kNodeSequence));
  event.node_sequence = state_.node_sequence;
  return true;
}

bool EventDecoder::decode_event(Columns& columns, const Defined& defined, Event& out) {
  const std::uint8_t tag = columns.byte(format::kTag);
  if (!kValidTag[tag]) return false;
  Event event;
  const std::uint64_t time_low = columns.byte(format::kTimeLow);
  state_.time_ns = apply_delta(state_.time_ns, time_low | (columns.varint(format::kTimeHigh) << 8));
  event.time_ns = state_.time_ns;
  if ((tag & format::kTagThread) != 0) {
    const std::uint64_t code = columns.varint(format::kThread);
    if (code > defined.threads) return false;
    state_.thread_code = static_cast<std::uint32_t>(code);
  }
  event.thread.value = state_.thread_code - 1;  // code 0 is none, which is all ones

  switch (static_cast<TagKind>(tag & format::kTagKindMask)) {
    case TagKind::allocate: {
      decode_device(columns, tag);
      event.size = columns.varint(format::kSize);
      if (!decode_address(columns, event)) return false;
      if (!decode_stack(columns, defined, event)) return false;
      event.slot.value = state_.allocate(event.address, event.size, state_.device);
      decode_totals(columns, tag, event.size, state_.device, event);
      break;
    }
    case TagKind::free: {
      event.kind = EventKind::free;
      const std::uint64_t slot = apply_delta(state_.freed_slot, columns.varint(format::kSlot));
      const EventState::Block* block = state_.live(slot);
      if (block == nullptr) return false;
      event.slot.value = static_cast<std::uint32_t>(slot);
      event.address = block->address;
      event.size = block->size;
      decode_totals(columns, tag, 0 - block->size, block->device, event);
      state_.free(event.slot.value);
      break;
    }
    case TagKind::unknown_free:
      event.kind = EventKind::free;
      decode_device(columns, tag);
      event.address = columns.varint(format::kAddress);
      decode_totals(columns, tag, 0, state_.device, event);
      break;
    case TagKind::out_of_memory: {
      event.kind = EventKind::out_of_memory;
      decode_device(columns, tag);
      event.size = columns.varint(format::kSize);
      if (!decode_stack(columns, defined, event)) return false;
      decode_totals(columns, tag, 0, state_.device, event);
      break;
    }
    case TagKind::pause:
      event.kind = EventKind::pause;
      break;
    case TagKind::resume:
      event.kind = EventKind::resume;
      break;
  }
  out = event;
  return true;
}

Result<void> EventDecoder::decode(std::span<const std::uint8_t> payload, const Definitions& definitions,
                                  std::vector<Event>& batch) {
  batch.clear();
  Columns columns;
  const std::uint64_t count = columns.open(payload);
  if (count > format::kMaxFrameEvents) return Error{"an events frame begins with nonsense"};
  const Defined defined = {static_cast<std::uint32_t>(definitions.stacks.size()),
                           static_cast<std::uint32_t>(definitions.threads.size()),
                           static_cast<std::uint32_t>(definitions.autograd_nodes.size())};
  batch.resize(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < batch.size(); ++n) {
    if (!decode_event(columns, defined, batch[n]) || columns.overrun) {
      batch.clear();
      return Error{"event " + std::to_string(n) + " of an events frame is nonsense"};
    }
  }
  if (!columns.finished()) {
    batch.clear();
    return Error{"the columns of an events frame do not have the lengths it claims"};
  }
  return {};
}

Result<void> EventDecoder::begin_at_state(std::span<const std::uint8_t> payload, const Definitions& definitions,
                                          std::vector<Event>& batch) {
  batch.clear();
  const DefinedIds defined = {static_cast<std::uint32_t>(definitions.stacks.size()),
                              static_cast<std::uint32_t>(definitions.threads.size()),
                              static_cast<std::uint32_t>(definitions.autograd_nodes.size())};
  const std::optional<RecordingState> saved = decode_state(payload, defined);
  if (!saved) return Error{"a state frame is nonsense"};
  EventState state;
  std::vector<std::uint32_t> devices;  // by the numbers of the saved ones
  devices.reserve(saved->devices.size());
  for (const RecordingState::OnDevice& on : saved->devices) {
    const std::uint32_t index = state.device_index(on.device);
    state.totals(index).allocated = on.allocated;
    state.totals(index).reserved = on.reserved;
    devices.push_back(index);
  }
  std::vector<std::pair<std::uint32_t, EventState::Block>> blocks;
  blocks.reserve(saved->blocks.size());
  for (const RecordingState::Block& block : saved->blocks) {
    blocks.emplace_back(block.slot, EventState::Block{block.address, block.size, devices[block.device], true});
  }
  state.restore(blocks, saved->expected, saved->recent);
  state.time_ns = saved->time_ns;
  state.thread_code = saved->thread_code;
  state.device = devices[saved->device];
  state.freed_slot = saved->freed_slot;
  state.allocated_at = saved->allocated_at;
  state.sequence = saved->sequence;
  state.node_sequence = saved->node_sequence;
  state_ = std::move(state);
  batch = saved->lead_in();
  return {};
}

}  // namespace tidemark
