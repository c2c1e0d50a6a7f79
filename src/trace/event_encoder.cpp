#include "trace/event_encoder.h"

#include <algorithm>

#include "trace/varint.h"

namespace tidemark {
namespace {

using format::TagKind;

// Room for what one event may put into a column at most.
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

/// Of a payload, before the columns, at most.
constexpr std::size_t kHeadBytes = (2 + format::kColumnCount) * kMaxVarintBytes;

// A state frame takes so much for its tables at most, and so much for a block. It is worth that after 16 times the bytes
// of events.
constexpr std::uint64_t kStateTableBytes = 16 * 1024;
constexpr std::uint64_t kStateBlockBytes = 12;
constexpr std::uint64_t kEventsForState = 16;

constexpr std::uint32_t id_code(std::uint32_t id) {
  return id + 1;
}  // none is 0

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
      begin(event, TagKind::unknown_free,
            static_cast<std::uint8_t>(device_flag(device) | totals_flags(event, device, 0)));
      put(format::kAddress, event.address);
      take_live(device, running(device).live);
      return;
    }
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

}  // namespace tidemark
