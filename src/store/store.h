// A recording in memory: input of every analysis.
//
// Two depths, filled by the same code: an Overview (totals and the stacks alive at each peak; memory does not grow with
// the number of events) and a Store (an Overview and every block as columns, some 33 bytes an event). Built once, then
// read-only and safe to read from several threads. Sizes are bytes, times ns from the recording's start and never
// decreasing: if the recorded clock stepped back, the time before the step is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/rules.h"
#include "base/result.h"
#include "store/held_memory.h"
#include "store/samples.h"
#include "trace/data_quality.h"
#include "trace/definitions.h"
#include "trace/event.h"

namespace tidemark {

using BlockId = Id<struct BlockTag>;

/// One memory device of the recording. Peaks are exact maxima over all events.
///
/// "Allocated" is the allocator's own total if it reports one (`has_totals`: equal to torch.cuda.memory_allocated to
/// the byte, even if events are missing), else the sum of the recorded blocks that are alive.
struct DeviceSummary {
  Device device;
  bool has_totals = false;
  std::uint64_t allocation_count = 0;
  std::uint64_t free_count = 0;            ///< all frees, including those without a recorded allocation
  std::uint64_t unmatched_free_count = 0;  ///< frees without a recorded allocation
  std::uint64_t out_of_memory_count = 0;
  std::uint64_t total_bytes_allocated = 0;  ///< traffic: the sum of all allocations' sizes, at most 2^64 - 1

  std::uint64_t live_allocated_bytes = 0;  ///< allocated at the end
  std::uint64_t live_recorded_bytes = 0;   ///< the part of it in recorded blocks
  std::uint64_t live_count = 0;            ///< recorded blocks alive at the end

  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t peak_recorded_bytes = 0;              ///< the part of it in recorded blocks
  std::uint64_t peak_count = 0;                       ///< recorded blocks alive then
  std::optional<std::uint64_t> peak_allocated_at_ns;  ///< the first moment of the peak; nullopt if nothing was
                                                      ///< allocated
  std::uint64_t peak_change_count = 0;                ///< how many of Store::live_changes lead up to the peak

  std::optional<std::uint64_t> peak_reserved_bytes;  ///< nullopt if the allocator reports none (CPU)
  std::optional<std::uint64_t> peak_reserved_at_ns;
  std::optional<std::uint64_t> end_reserved_bytes;
  std::optional<std::uint64_t> peak_active_bytes;  ///< nullopt if unknown (recordings)
  std::optional<std::uint64_t> peak_active_at_ns;
  std::optional<std::uint64_t> end_active_bytes;
  std::optional<std::uint64_t> baseline_bytes;  ///< allocated before the first event; nullopt without totals
};

/// Details of a failed request that only some sources contain.
struct OutOfMemoryDetails {
  std::optional<std::uint64_t> device_free;  ///< as reported by the driver
  std::optional<std::uint16_t> stream;       ///< index into Store::streams
  std::optional<std::uint16_t> pool;         ///< index into Store::pools
  std::size_t segment_changes = 0;           ///< number of Store::segment_changes up to then
};

struct OutOfMemory : OutOfMemoryDetails {
  std::uint64_t time_ns = 0;
  std::uint64_t change_count = 0;  ///< number of Store::live_changes up to then
  std::uint64_t requested = 0;     ///< as the allocator rounded it
  std::optional<std::uint64_t> allocated;
  std::optional<std::uint64_t> reserved;
  StackId stack;
  ThreadId thread;
  AutogradNodeId node = {};  ///< as in Event, and so the next two
  std::uint64_t node_sequence = 0;
  std::uint64_t sequence = 0;
  std::uint8_t device = 0;
};

/// The allocator's own totals at one time.
struct AllocatorTotals {
  std::uint64_t active = 0;    ///< allocated, and freed but still in use by a stream
  std::uint64_t reserved = 0;  ///< reserved from the driver
};

/// Source of the events.
enum class SourceKind : std::uint8_t { recording, pytorch_snapshot };

struct Source {
  SourceKind kind = SourceKind::recording;
  bool growing = false;       ///< followed while it is written
  std::string simulated_gpu;  ///< name of the one that `tidemark plan` simulated; empty: the program ran without it
  std::optional<pytorch::AllocatorSettings> allocator_settings;  ///< nullopt if missing from the file
  std::vector<QualityIssue> issues;                              ///< found while reading an imported file
};

/// The program had paused recording.
struct Pause {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;

  friend bool operator==(const Pause&, const Pause&) = default;
};

/// Result of one pass over the events.
struct Overview {
  std::string path;
  Source source;
  Definitions definitions;
  std::vector<DeviceSummary> devices;      ///< in order of their first event; at most kMaxDevices
  std::vector<StackUsage> stacks_at_peak;  ///< for each device at its own peak; in no particular order, never 0 blocks
  std::vector<OutOfMemory> out_of_memory;
  std::uint64_t event_count = 0;
  std::optional<std::uint64_t> last_event_ns;  ///< nullopt without events
  std::uint64_t end_ns = 0;                    ///< time of the last event or of the end record
  std::vector<Pause> pauses;                   ///< in order of time; one that never ended, up to end_ns
  /// For the last part of a longer recording: time from the recording's beginning to the part's, which is its time 0.
  std::optional<std::uint64_t> window_began_ns;
};

inline constexpr std::size_t kMaxDevices = 256;

/// Details of a block that only some sources contain.
struct BlockDetails {
  std::uint64_t requested = 0;  ///< requested bytes: at most the block's size
  std::uint16_t stream = 0;     ///< index into Store::streams
  std::uint16_t pool = 0;       ///< index into Store::pools
  StringId metadata = {};       ///< as in Blocks::metadata; invalid: none
};

/// Text that the program attached to a block: torch.cuda.memory._set_memory_metadata, _annotate_tensor.
struct BlockMetadata {
  BlockId block;
  StringId text;
};

/// Blocks, in order of birth. One entry of every column per block.
struct Blocks {
  static constexpr std::uint32_t kAlive = std::numeric_limits<std::uint32_t>::max();  ///< death of a block never freed

  std::vector<std::uint32_t> birth_change;  ///< index into Store::live_changes
  std::vector<std::uint32_t> death_change;  ///< index of the change that freed it, or kAlive
  std::vector<std::uint64_t> address;
  std::vector<std::uint64_t> size;
  std::vector<StackId> stack;
  std::vector<ThreadId> thread;
  std::vector<std::uint8_t> device;  ///< index into Overview::devices

  // As in Event; all three empty if no block has them.
  std::vector<AutogradNodeId> node;
  std::vector<std::uint64_t> node_sequence;
  std::vector<std::uint64_t> sequence;

  // From BlockDetails; empty if the source does not contain it.
  std::vector<std::uint64_t> requested;
  std::vector<std::uint16_t> stream;
  std::vector<std::uint16_t> pool;
  std::vector<BlockMetadata> metadata;  ///< in order of blocks, then of time

  [[nodiscard]] std::size_t count() const { return size.size(); }
  /// Whether the block is alive after the first `change_count` live changes.
  [[nodiscard]] bool alive(std::size_t block, std::uint64_t change_count) const {
    return birth_change[block] < change_count && change_count <= death_change[block];
  }
};

/// A change of the live set: a block was allocated or freed.
struct LiveChange {
  std::uint64_t time_ns = 0;
  BlockId block;
  bool birth = false;
};

/// A change by one event of the allocator's totals beyond the recorded blocks. Holds from that event on.
struct TotalsChange {
  std::uint64_t time_ns = 0;
  std::uint64_t change_count = 0;  ///< number of Store::live_changes up to then, including the event's own one
  bool with_live_change = false;   ///< whether that event has a live change: the last of these
  std::int64_t unrecorded = 0;     ///< allocated minus the recorded live blocks; below 0 only in damaged recordings
  std::uint64_t reserved = 0;
  std::uint64_t pending = 0;  ///< active minus allocated; 0 if unknown
  std::uint8_t device = 0;
};

/// Memory that the allocator took from the driver or gave back to it: a segment, or a piece of an expandable one.
struct SegmentChange {
  std::uint64_t time_ns = 0;
  std::uint64_t change_count = 0;  ///< number of Store::live_changes up to then
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  StackId stack;             ///< of the request that caused it
  std::uint16_t stream = 0;  ///< index into Store::streams
  std::uint16_t pool = 0;    ///< index into Store::pools
  std::uint8_t device = 0;   ///< index into Overview::devices
  bool reserved = false;     ///< taken from the driver; otherwise given back
  bool expandable = false;
};

/// A block that was given back while another stream still used it: its memory was not free before `until`.
struct PendingFree {
  static constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();  ///< still in use at the end

  BlockId block;
  std::uint64_t until_ns = kEnd;
  std::uint64_t until_change_count = kEnd;  ///< number of Store::live_changes up to then
};

/// Every block.
struct Store : Overview {
  Blocks blocks;
  std::vector<LiveChange> live_changes;        ///< every allocate and (matched) free, in order
  std::vector<TotalsChange> totals_changes;    ///< of devices with totals, in order; empty otherwise
  std::vector<SegmentChange> segment_changes;  ///< in order; empty if the source has no segments
  std::size_t segment_changes_before = 0;      ///< the number of them from before the first event
  std::vector<PendingFree> pending_frees;      ///< in order of their deaths
  std::vector<std::uint64_t> streams;          ///< handles; 0 = the default stream
  std::vector<PoolId> pools;
  Samples samples;  ///< empty if none were taken, and in imported files

  /// How many live changes happened up to and including `time_ns`.
  [[nodiscard]] std::uint64_t changes_until(std::uint64_t time_ns) const;
};

/// Called now and then with (bytes done, bytes in all).
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

/// Reads a whole recording, keeping totals only; samples are not kept, but passed to `samples`, if given. Errors name
/// the file.
Result<Overview> load_overview(const std::string& path, const Progress& progress = {},
                               const SampleConsumer& samples = {});

/// Reads a whole recording, keeping every block. Also fails for more than 2^32 - 2 events.
Result<Store> load_store(const std::string& path, const Progress& progress = {});

}  // namespace tidemark
