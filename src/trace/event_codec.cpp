#include "trace/event_codec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/units.h"
#include "trace/format.h"
#include "trace/recording_state.h"
#include "trace/varint.h"

namespace tidemark {

namespace {

using format::TagKind;

// Maximum size of one event in each column.
constexpr std::array<std::size_t, format::kColumnCount> kBytesPerEvent = {
    1,                    // tag
    1,                    // time low
    kMaxVarintBytes,      // time high
    kMaxVarintBytes,      // thread
    2,                    // device
    1 + kMaxVarintBytes,  // address
    kMaxVarintBytes,      // size
    kMaxVarintBytes,      // stack
    kMaxVarintBytes,      // slot
    2 * kMaxVarintBytes,  // totals
    kMaxVarintBytes,      // sequence
    kMaxVarintBytes,      // node
    kMaxVarintBytes,      // node sequence
};

/// Maximum size of a payload before the columns.
constexpr std::size_t kHeadBytes = (2 + format::kColumnCount) * kMaxVarintBytes;

// Maximum size of a state frame's tables, and of a block in it. A state frame is due after 16 times its size in bytes
// of events.
constexpr std::uint64_t kStateTableBytes = 16 * kKiB;
constexpr std::uint64_t kStateBlockBytes = 12;
constexpr std::uint64_t kEventsForState = 16;

constexpr std::uint32_t id_code(std::uint32_t id) {
  return id + 1;
}  // 0 is none

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

// Payload of an events frame:
//
//   varint events | varint columns (10 to 13) | varint length, for each column |
//   tag | time low | time high | thread | device | address | size | stack | slot | totals | sequence | node | node
//   sequence
//
// What an event puts where (v = varint, z = zig-zag varint of a difference; [flag] = only when that flag is in its
// tag):
//
//   column     allocate         free              unknown free  out of memory  pause, resume
//   tag        byte             byte              byte          byte           byte
//   time low   byte             byte              byte          byte           byte           low 8 bits of z(time)
//   time high  v                v                 v             v              v              the bits above
//   thread     v [thread]       v [thread]        v [thread]    v [thread]     v [thread]     id + 1
//   device     2 bytes [device] –                 2 B [device]  2 B [device]   –              type, index
//   address    see below        –                 v             –              –
//   size       v                –                 –             v              –
//   stack      v                –                 –             v              –              id + 1
//   slot       –                z from last free  –             –              –
//   totals     z [allocated] z [reserved], each from what was expected; none for pause and resume
//   sequence   z                –                 –             z              –              from the last of these
//   node       v                –                 –             v              –              id + 1
//   node seq.  z if node        –                 –             z if node      –              from the last of these
//
// An allocation's address: 0 = as expected, 1 and z from the previous allocation's = new, 2 + n = number n of the
// recent ones. The columns are kept apart because a training loop repeats everything but its times exactly.

EventEncoder::EventEncoder() {
  for (std::size_t n = 0; n < columns_.size(); ++n) {
    columns_[n].bytes = std::make_unique_for_overwrite<std::uint8_t[]>(kBytesPerEvent[n] * format::kMaxFrameEvents);
    columns_[n].end = columns_[n].bytes.get();
  }
}

void EventEncoder::put(format::Column column, std::uint64_t value) {
  columns_[column].end = put_varint(columns_[column].end, value);
}

void EventEncoder::begin(const Event& event, TagKind kind, std::uint8_t flags) {
  const std::uint32_t thread = id_code(event.thread.value);
  if (thread != state_.thread_code) {
    flags |= format::kTagThread;
    put(format::kThread, thread);
    state_.thread_code = thread;
  }
  const std::uint64_t time = delta_code(state_.time_ns, event.time_ns);
  state_.time_ns = event.time_ns;
  *columns_[format::kTag].end++ = static_cast<std::uint8_t>(static_cast<std::uint8_t>(kind) | flags);
  *columns_[format::kTimeLow].end++ = static_cast<std::uint8_t>(time);
  put(format::kTimeHigh, time >> 8);
  ++count_;
}

std::uint8_t EventEncoder::device_flag(std::uint32_t device) {
  if (device == state_.device) return 0;
  state_.device = device;
  const Device named = state_.totals(device).device;
  *columns_[format::kDevice].end++ = static_cast<std::uint8_t>(named.type);
  *columns_[format::kDevice].end++ = static_cast<std::uint8_t>(named.index);
  return format::kTagDevice;
}

std::uint8_t EventEncoder::totals_flags(const Event& event, std::uint32_t device, std::uint64_t grown_by) {
  if (!event.has_totals) return 0;
  EventState::DeviceTotals& totals = state_.totals(device);
  std::uint8_t flags = format::kTagTotals;
  const std::uint64_t expected = totals.allocated + grown_by;
  if (event.total_allocated != expected) {
    flags |= format::kTagAllocated;
    put(format::kTotals, delta_code(expected, event.total_allocated));
  }
  if (event.total_reserved != totals.reserved) {
    flags |= format::kTagReserved;
    put(format::kTotals, delta_code(totals.reserved, event.total_reserved));
  }
  totals.allocated = event.total_allocated;
  totals.reserved = event.total_reserved;
  DeviceRunningTotals& told = running(device);
  told.has_totals = true;
  told.allocated = totals.allocated;
  told.reserved = totals.reserved;
  told.peak_allocated = std::max(told.peak_allocated, told.allocated);
  told.peak_reserved = std::max(told.peak_reserved, told.reserved);
  return flags;
}

DeviceRunningTotals& EventEncoder::running(std::uint32_t device) {
  if (device >= running_.size()) {
    running_.resize(std::size_t{device} + 1);
    seen_.resize(running_.size());
  }
  DeviceRunningTotals& of = running_[device];
  if (!seen_[device]) {
    seen_[device] = true;
    of.device = state_.totals(device).device;
  }
  return of;
}

void EventEncoder::take_live(std::uint32_t device, std::uint64_t live) {
  DeviceRunningTotals& of = running(device);
  of.live = live;
  of.peak_live = std::max(of.peak_live, live);
}

void EventEncoder::put_address(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t index = EventState::recent_index(address);
  if (address == state_.expected_address(size)) {
    put(format::kAddress, format::kAddressExpected);
  } else if (address == state_.recent_address(index)) {
    put(format::kAddress, format::kAddressRecent + index);
  } else {
    put(format::kAddress, format::kAddressNew);
    put(format::kAddress, delta_code(state_.allocated_at, address));
  }
}

void EventEncoder::put_attribution(const Event& event) {
  put(format::kSequence, delta_code(state_.sequence, event.sequence));
  has_sequences_ |= event.sequence != state_.sequence;
  state_.sequence = event.sequence;
  put(format::kNode, id_code(event.node.value));
  if (!event.node.valid()) return;
  has_nodes_ = true;
  put(format::kNodeSequence, delta_code(state_.node_sequence, event.node_sequence));
  state_.node_sequence = event.node_sequence;
}

void EventEncoder::add_allocation(const Event& event, std::uint32_t device) {
  const std::uint8_t flags = static_cast<std::uint8_t>(device_flag(device) | totals_flags(event, device, event.size));
  begin(event, TagKind::allocate, flags);
  put_address(event.address, event.size);
  put(format::kSize, event.size);
  put(format::kStack, id_code(event.stack.value));
  put_attribution(event);
  const std::uint32_t slot = state_.allocate(event.address, event.size, device);
  live_.insert(event.address, device, slot);
  if (slot >= origins_.size()) origins_.resize(std::size_t{slot} + 1);
  origins_[slot] = {event.time_ns, event.sequence, event.node_sequence, event.stack, event.thread, event.node};
  take_live(device, running(device).live + event.size);
}

void EventEncoder::add_free_of(std::uint32_t slot, const Event& event, std::uint32_t device, bool totals_known) {
  const std::uint64_t size = state_.live(slot)->size;
  begin(event, TagKind::free, totals_known ? totals_flags(event, device, 0 - size) : std::uint8_t{0});
  put(format::kSlot, delta_code(state_.freed_slot, slot));
  state_.free(slot);
  take_live(device, running(device).live - size);
}

void EventEncoder::add_without_block(const Event& event, std::uint32_t device, std::uint64_t address) {
  begin(event, TagKind::unknown_free, static_cast<std::uint8_t>(device_flag(device) | totals_flags(event, device, 0)));
  put(format::kAddress, address);
  take_live(device, running(device).live);
}

void EventEncoder::add(const Event& event) {
  switch (event.kind) {
    case EventKind::allocate: {
      const std::uint32_t device = state_.device_index(event.device);
      // A free that was not seen: the allocator would not hand out an address twice.
      if (const std::uint32_t slot = live_.take(event.address, device); slot != AddressMap::kAbsent) {
        add_free_of(slot, event, device, false);
      }
      add_allocation(event, device);
      return;
    }
    case EventKind::free: {
      const std::uint32_t device = state_.device_index(event.device);
      if (const std::uint32_t slot = live_.take(event.address, device); slot != AddressMap::kAbsent) {
        add_free_of(slot, event, device, true);
        return;
      }
      add_without_block(event, device, event.address);
      return;
    }
    case EventKind::release:
      return add_without_block(event, state_.device_index(event.device), format::kNoBlock);
    case EventKind::out_of_memory: {
      const std::uint32_t device = state_.device_index(event.device);
      begin(event, TagKind::out_of_memory,
            static_cast<std::uint8_t>(device_flag(device) | totals_flags(event, device, 0)));
      put(format::kSize, event.size);
      put(format::kStack, id_code(event.stack.value));
      put_attribution(event);
      return;
    }
    case EventKind::pause:
      begin(event, TagKind::pause, 0);
      paused_ = true;
      return;
    case EventKind::resume:
      begin(event, TagKind::resume, 0);
      paused_ = false;
      return;
  }
}

std::size_t EventEncoder::payload_bytes() const {
  if (empty()) return 0;
  std::size_t bytes = kHeadBytes;
  for (const Buffer& column : columns_) bytes += static_cast<std::size_t>(column.end - column.bytes.get());
  return bytes;
}

std::size_t EventEncoder::column_count() const {
  if (has_nodes_) return format::kColumnCount;
  return has_sequences_ ? std::size_t{format::kNode} : format::kMinColumns;
}

void EventEncoder::append_frame(FrameEncoder& frames, std::vector<std::byte>& out) {
  std::array<std::uint8_t, kHeadBytes> head;
  std::array<ByteSpan, 1 + format::kColumnCount> parts;
  const std::size_t columns = column_count();
  std::uint8_t* end = put_varint(put_varint(head.data(), count_), columns);
  for (std::size_t n = 0; n < columns; ++n) {
    parts[n + 1] = ByteSpan(columns_[n].bytes.get(), columns_[n].end);
    end = put_varint(end, parts[n + 1].size());
  }
  parts[0] = ByteSpan(head.data(), end);
  const std::size_t before = out.size();
  frames.append(format::FrameType::events, {parts.data(), columns + 1}, out);
  bytes_since_state_ += out.size() - before;
  untold_events_ += count_;
  for (Buffer& column : columns_) column.end = column.bytes.get();
  count_ = 0;
  has_sequences_ = false;
  has_nodes_ = false;
}

bool EventEncoder::is_state_due() const {
  const std::uint64_t state_bytes = kStateTableBytes + kStateBlockBytes * live_.count();
  return bytes_since_state_ >= kEventsForState * state_bytes && fits_in_state_frame(live_.count(), state_.slot_count());
}

RecordingState EventEncoder::state() const {
  RecordingState state;
  state.time_ns = state_.time_ns;
  state.thread_code = state_.thread_code;
  state.device = state_.device;
  state.freed_slot = state_.freed_slot;
  state.allocated_at = state_.allocated_at;
  state.sequence = state_.sequence;
  state.node_sequence = state_.node_sequence;
  state.paused = paused_;
  for (std::size_t n = 0; n < state_.devices().size(); ++n) {
    const EventState::DeviceTotals& on = state_.devices()[n];
    const bool has_totals = n < running_.size() && running_[n].has_totals;
    state.devices.push_back({on.device, has_totals, on.allocated, on.reserved});
  }
  state.blocks.reserve(live_.count());
  for (std::uint32_t slot = 0; slot < state_.slot_count(); ++slot) {
    const EventState::Block* block = state_.live(slot);
    if (block == nullptr) continue;
    const Origin& origin = origins_[slot];
    state.blocks.push_back({slot, block->device, block->address, block->size, origin.time_ns, origin.stack,
                            origin.thread, origin.sequence, origin.node, origin.node_sequence});
  }
  state.expected = state_.expected_addresses();
  state.recent = state_.recent_addresses();
  return state;
}

void EventEncoder::append_checkpoint(FrameEncoder& frames, std::vector<std::byte>& out) {
  const bool with_state = is_state_due();
  if (!with_state && untold_events_ < format::kMinTotalsEvents) return;
  RunningTotals totals{untold_events_, state_.time_ns, {}};
  for (std::size_t device = 0; device < running_.size(); ++device) {
    DeviceRunningTotals& of = running_[device];
    if (!seen_[device]) continue;
    totals.devices.push_back(of);
    of.peak_live = of.live;
    of.peak_allocated = of.allocated;
    of.peak_reserved = of.reserved;
  }
  frames.append_plain(format::FrameType::totals, encode_totals(totals), out);
  untold_events_ = 0;
  if (!with_state) return;
  append_state_frame(state(), frames, out);
  bytes_since_state_ = 0;
}

/// One read position for each column. A read past a column's end gives 0 and sets `overrun`; a varint that crosses the
/// end leaves the position after it, which finished() detects.
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
    // Columns after the known ones belong to a later version, and are skipped.
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
  /// 0 if the column was left out. It is then empty, so that finished() holds.
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

bool EventDecoder::decode_stack(Columns& columns, const DefinedIds& defined, Event& event) {
  const std::uint64_t stack = columns.varint(format::kStack);
  const std::uint64_t node = columns.varint_or_0(format::kNode);
  if (stack > defined.stacks || node > defined.autograd_nodes) return false;
  event.stack.value = static_cast<std::uint32_t>(stack) - 1;  // code 0 is none, which is all ones
  event.node.value = static_cast<std::uint32_t>(node) - 1;
  state_.sequence = apply_delta(state_.sequence, columns.varint_or_0(format::kSequence));
  event.sequence = state_.sequence;
  if (node == 0) return true;
  state_.node_sequence = apply_delta(state_.node_sequence, columns.varint_or_0(format::kNodeSequence));
  event.node_sequence = state_.node_sequence;
  return true;
}

bool EventDecoder::decode_event(Columns& columns, const DefinedIds& defined, Event& out) {
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
      decode_device(columns, tag);
      event.address = columns.varint(format::kAddress);
      event.kind = event.address == format::kNoBlock ? EventKind::release : EventKind::free;
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
  const DefinedIds defined = DefinedIds::of(definitions);
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
  const std::optional<RecordingState> saved = decode_state(payload, DefinedIds::of(definitions));
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
