// A recording in memory, as columns: what every analysis works on.
//
// Built once, then read-only and safe to read from several threads. Sizes are bytes, times ns from the recording's start.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/event.h"

namespace tidemark {

using BlockId = Id<struct BlockTag>;

/// Blocks, in order of birth. One entry of every column per block.
struct Blocks {
  static constexpr std::uint64_t kAlive = ~std::uint64_t{0};  ///< death_ns of a block never freed

  std::vector<std::uint64_t> birth_ns;
  std::vector<std::uint64_t> death_ns;
  std::vector<std::uint64_t> address;
  std::vector<std::uint64_t> size;
  std::vector<StackId> stack;
  std::vector<ThreadId> thread;
  std::vector<std::uint8_t> device;  ///< index into Store::devices

  [[nodiscard]] std::size_t count() const { return size.size(); }
};

/// An event reduced to what replaying the live set needs.
struct Step {
  std::uint64_t time_ns;
  BlockId block;
  bool birth;
};

/// One memory device of the recording. Peaks are exact maxima over all events.
struct DeviceSummary {
  Device device;
  std::uint64_t allocation_count = 0;
  std::uint64_t free_count = 0;
  std::uint64_t total_bytes_allocated = 0;  ///< traffic: the sum of all allocations' sizes
  std::uint64_t live_allocated_bytes = 0;   ///< at the end
  std::uint64_t live_count = 0;             ///< blocks alive at the end
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t peak_allocated_at_ns = 0;   ///< the first moment of the peak
  std::uint64_t peak_step = 0;              ///< index into Store::steps just after which the peak holds
  std::optional<std::uint64_t> peak_reserved_bytes;  ///< none where the allocator reports none (CPU)
  std::optional<std::uint64_t> peak_reserved_at_ns;
  std::optional<std::uint64_t> end_reserved_bytes;
  std::uint64_t unmatched_free_count = 0;   ///< frees of blocks whose allocation was not recorded
  std::uint64_t out_of_memory_count = 0;
  std::uint64_t baseline_bytes = 0;         ///< allocated before the recording began, by the allocator's own totals
};

/// A change of a device's reserved bytes.
struct ReservedChange {
  std::uint64_t time_ns;
  std::uint64_t reserved;
  std::uint8_t device;
};

struct OutOfMemory {
  std::uint64_t time_ns;
  std::uint64_t requested;
  std::uint64_t allocated;
  std::uint64_t reserved;
  StackId stack;
  ThreadId thread;
  std::uint8_t device;
};

struct Store {
  std::string path;
  Definitions definitions;
  std::vector<DeviceSummary> devices;
  Blocks blocks;
  std::vector<Step> steps;                ///< every allocate and (matched) free, in order
  std::vector<ReservedChange> reserved;
  std::vector<OutOfMemory> out_of_memory;
  std::uint64_t event_count = 0;
  std::uint64_t end_ns = 0;               ///< time of the last event or of the end record
  std::uint64_t paused_ns = 0;            ///< sum of the paused stretches
};

/// Called now and then with (bytes done, bytes in all).
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

/// Loads a whole recording.
Result<Store> load_store(const std::string& path, const Progress& progress = {});

}  // namespace tidemark
