// A single event, as passed to a recording's writer and returned by its reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/enum_names.h"
#include "base/ids.h"

namespace tidemark {

/// Kind of device, and the allocator that owns the memory. Numbers up to 99 are c10::DeviceType's
/// (c10/core/DeviceType.h), with blocks of the framework's allocator. From 100 on they are Tidemark's, for memory that
/// the CUDA driver allocated for any library of the process, including the framework's segments.
enum class DeviceType : std::int8_t {
  cpu = 0,
  cuda = 1,
  hip = 6,
  xpu = 12,
  cuda_driver = 100,   ///< on the device with that index
  cuda_managed = 101,  ///< managed memory, of the device that was current: the driver moves it between GPU and host
  cuda_host = 102,     ///< page-locked ("pinned") memory of the host
};

/// A memory device: its type (any value, also ones not named above) and index (0 for the CPU and for cuda_host).
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int8_t index = 0;

  constexpr bool operator==(const Device&) const = default;
};

/// Whether the driver's calls are the blocks of this device, not the framework's.
[[nodiscard]] constexpr bool is_driver_memory(Device device) {
  return static_cast<std::int8_t>(device.type) >= static_cast<std::int8_t>(DeviceType::cuda_driver);
}

/// "cpu", "cuda:0", "cuda-driver:0", "cuda-host"; "device-type-9:0" for a type without a name here.
[[nodiscard]] std::string to_string(Device device);
/// The inverse of to_string().
[[nodiscard]] std::optional<Device> parse_device(std::string_view text);

/// A pool of PyTorch's caching allocator: (0, 0) is the default, others belong to CUDA graphs or torch.cuda.MemPool.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool operator==(const PoolId&) const = default;
};

enum class EventKind : std::uint8_t {
  allocate = 0,       ///< a block was handed out
  free = 1,           ///< a block was given back
  out_of_memory = 2,  ///< a request failed; `size` is the requested size
  pause = 3,          ///< recording was switched off by the program: events are missing from here on
  resume = 4,         ///< ... and on again
  release = 5,        ///< the allocator gave segments back, with no block: only its totals changed
};

inline constexpr EnumName<EventKind> kEventKindNames[] = {
    {EventKind::allocate, "allocate"}, {EventKind::free, "free"},     {EventKind::out_of_memory, "out_of_memory"},
    {EventKind::pause, "pause"},       {EventKind::resume, "resume"}, {EventKind::release, "release"},
};

/// Number of a block among the blocks alive at one time: dense, reused after a free (see docs/format.md, "slots").
using SlotId = Id<struct SlotTag>;

/// One event. `kind` determines which fields are used; the others are zero or invalid.
struct Event {
  std::uint64_t time_ns = 0;          ///< from the recording's start (ProcessInfo::start_wall_ns is the anchor)
  std::uint64_t address = 0;          ///< allocate, free
  std::uint64_t size = 0;             ///< bytes. free: of the block that died, 0 when its allocation was not seen
  std::uint64_t total_allocated = 0;  ///< bytes, the allocator's own counter after this event, if has_totals
  std::uint64_t total_reserved = 0;   ///< bytes, also the allocator's counter
  SlotId slot;                        ///< allocate, free; invalid for a free without a recorded allocation
  StackId stack;                      ///< allocate, out_of_memory; invalid if there is none
  ThreadId thread;
  AutogradNodeId node = {};         ///< allocate, out_of_memory: of the backward pass that the thread is in, if any
  std::uint64_t node_sequence = 0;  ///< with `node`: its number among the nodes that its forward thread made
  std::uint64_t sequence = 0;       ///< allocate, out_of_memory: the number of the next node that this thread makes
  Device device;
  EventKind kind = EventKind::allocate;
  bool has_totals = false;  ///< false on the CPU, whose allocator keeps no totals
};

/// The value of `held` bytes after an event of `size` bytes; only allocate and free change it.
[[nodiscard]] constexpr std::uint64_t held_after(EventKind kind, std::uint64_t size, std::uint64_t held) {
  if (kind == EventKind::allocate) return held + size;
  return kind == EventKind::free ? held - (size < held ? size : held) : held;
}

}  // namespace tidemark
