// Constants of the file format, specified in docs/format.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/enum_names.h"

namespace tidemark::format {

inline constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'T', 'I', 'D', 'E', '\r', '\n', 0x1A};

/// Version written by this code, and the oldest reader that can still read it.
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint16_t kMinimumReader = 1;

inline constexpr std::size_t kFileHeaderBytes = 16;
inline constexpr std::size_t kFrameHeaderBytes = 16;

/// Maximum size of a frame's payload, compressed or not: bounds a reader's allocation for untrusted files.
inline constexpr std::uint32_t kMaxPayloadBytes = 16U << 20;
inline constexpr std::size_t kMaxFrameEvents = 16384;
/// Minimum number of events that a totals frame covers: fewer are fast to read.
inline constexpr std::uint64_t kMinTotalsEvents = 4096;
/// Maximum number of blocks, and of slots, in a state frame: bounds a reader's allocation.
inline constexpr std::uint64_t kMaxStateBlocks = std::uint64_t{1} << 17;
inline constexpr std::uint64_t kMaxStateSlots = std::uint64_t{1} << 20;
/// Longer strings are cut when writing.
inline constexpr std::size_t kMaxStringBytes = std::size_t{1} << 20;

enum class FrameType : std::uint8_t { definitions = 1, events = 2, samples = 3, totals = 4, state = 5 };
inline constexpr EnumName<FrameType> kFrameTypeNames[] = {{FrameType::definitions, "definitions"},
                                                          {FrameType::events, "events"},
                                                          {FrameType::samples, "samples"},
                                                          {FrameType::totals, "totals"},
                                                          {FrameType::state, "state"}};
/// The last known type.
inline constexpr FrameType kLastFrameType = FrameType::state;
inline constexpr std::uint8_t kFrameVersion = 1;
inline constexpr std::uint16_t kFlagZstd = 1;

enum class RecordKind : std::uint8_t {
  process = 1,
  string = 2,
  location = 3,
  stack = 4,
  thread = 5,
  module = 6,
  loss = 7,
  end = 8,
  mark = 9,
  nn_module = 10,
  nn_module_name = 11,
  tensor = 12,
  autograd_node = 13,
};

/// Kinds of records in a samples frame.
enum class SampleKind : std::uint8_t {
  device = 1,
  device_sample = 2,
  device_processes = 3,
  host = 4,
  slow_driver_call = 5,
  host_parts = 6,
  killed_process = 7
};

// Event tag:  | 7 reserved | 6 allocated | 5 totals | 4 device | 3 thread | 2 1 0 kind |
enum class TagKind : std::uint8_t {
  allocate = 0,
  free = 1,
  unknown_free = 2,
  out_of_memory = 3,
  pause = 4,
  resume = 5
};
inline constexpr std::uint8_t kTagKindMask = 0x07;
inline constexpr std::uint8_t kTagThread = 0x08;     ///< thread differs from the previous event's: in the thread column
inline constexpr std::uint8_t kTagDevice = 0x10;     ///< device differs from the previous one: in the device column
inline constexpr std::uint8_t kTagTotals = 0x20;     ///< has_totals
inline constexpr std::uint8_t kTagAllocated = 0x40;  ///< total_allocated differs from the prediction: in the totals
                                                     ///< column
inline constexpr std::uint8_t kTagReserved = 0x80;   ///< total_reserved differs from the prediction: in the totals
                                                     ///< column

/// The address of an unknown free that frees no block: the allocator released segments.
inline constexpr std::uint64_t kNoBlock = 0;

/// How the address column begins an allocation's entry.
inline constexpr std::uint64_t kAddressExpected = 0;
inline constexpr std::uint64_t kAddressNew = 1;     ///< a difference follows
inline constexpr std::uint64_t kAddressRecent = 2;  ///< plus the index among the recent addresses

/// Columns of an events frame, in the order of the payload.
enum Column : std::size_t {
  kTag,
  kTimeLow,
  kTimeHigh,
  kThread,
  kDevice,
  kAddress,
  kSize,
  kStack,
  kSlot,
  kTotals,
  kSequence,  ///< from here on: left out if all of its numbers are 0
  kNode,
  kNodeSequence,
  kColumnCount
};
/// Minimum number of columns of a frame.
inline constexpr std::size_t kMinColumns = kSequence;
/// A later version may append columns, up to this many in all.
inline constexpr std::size_t kMaxColumns = 64;

}  // namespace tidemark::format
