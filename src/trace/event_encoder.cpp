#include "trace/event_encoder.h"

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
  return flags;
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
  live_.insert(event.address, device, state_.allocate(event.address, event.size, device));
}

void EventEncoder::add_free_of(std::uint32_t slot, const Event& event, std::uint32_t device, bool totals_known) {
  const std::uint64_t size = state_.live(slot)->size;
  begin(event, TagKind::free, totals_known ? totals_flags(event, device, 0 - size) : std::uint8_t{0});
  put(format::kSlot, delta_code(state_.freed_slot, slot));
  state_.free(slot);
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
      return;
    case EventKind::resume:
      begin(event, TagKind::resume, 0);
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
  frames.append(format::FrameType::events, {parts.data(), columns + 1}, out);
  for (Buffer& column : columns_) column.end = column.bytes.get();
  count_ = 0;
  has_sequences_ = false;
  has_nodes_ = false;
}

}  // namespace tidemark
