// A PyTorch memory snapshot as columns: the content of torch.cuda.memory._snapshot(), unprocessed.
//
// Sizes are bytes. Addresses are the device's. Times are microseconds of the wall clock, as PyTorch wrote them; they
// may step backwards. Data missing from a file is an invalid id, an empty string or nullopt, never a guess.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/rules.h"
#include "base/ids.h"
#include "trace/definitions.h"
#include "trace/event.h"

namespace tidemark::pytorch {

/// The `action` of a trace entry.
enum class Action : std::uint8_t {
  allocate,        ///< "alloc": size is the requested one
  free_requested,  ///< the program gave the block back
  free_completed,  ///< the allocator may use it again
  segment_alloc,
  segment_free,
  segment_map,  ///< part of an expandable segment
  segment_unmap,
  snapshot,
  out_of_memory,
  user_defined,
  annotate,  ///< user_metadata annotates the block at this address
  unknown,   ///< counted in Snapshot::unknown_actions or DeviceTrace::unreadable_entries
};

struct TraceEntry {
  std::uint64_t address = 0;  ///< out_of_memory: bytes free on the device (`device_free`)
  std::uint64_t size = 0;
  std::int64_t time_us = 0;
  StackId stack;             ///< invalid if no context was captured
  std::uint16_t stream = 0;  ///< index into Snapshot::streams
  std::uint16_t pool = 0;    ///< index into Snapshot::pools; 0 if missing from the file
  Action action = Action::unknown;
  // False: missing from the file, or invalid.
  bool has_address = true;
  bool has_size = true;
  bool has_time = true;  ///< false: time_us is the time of the entry before
};

enum class BlockState : std::uint8_t { inactive, active_allocated, active_pending_free, unknown };

struct SnapshotBlock {
  std::uint64_t address = 0;  ///< computed from the segment's if missing from an old file
  std::uint64_t size = 0;
  std::uint64_t requested_size = 0;
  StackId stack;
  BlockState state = BlockState::unknown;
};

struct SnapshotSegment {
  std::uint64_t address = 0;
  std::uint64_t total_size = 0;
  std::uint64_t allocated_size = 0;
  std::uint64_t active_size = 0;
  std::uint64_t requested_size = 0;
  std::int32_t device = 0;
  std::uint16_t stream = 0;  ///< index into Snapshot::streams
  std::uint16_t pool = 0;    ///< index into Snapshot::pools
  bool large = false;        ///< segment_type
  bool expandable = false;
  StackId stack;
  std::vector<SnapshotBlock> blocks;  ///< in order of address
};

/// One entry of `external_annotations`: the beginning or end of a named stretch.
struct Annotation {
  std::int64_t time_us = 0;
  std::optional<std::int32_t> device;
  bool start = false;
  StringId name;
};

/// Text attached to a trace entry.
struct EntryText {
  std::uint32_t entry = 0;  ///< index into the device's trace
  StringId text;
};

struct DeviceTrace {
  std::int32_t device = 0;
  std::vector<TraceEntry> entries;         ///< in the file's order
  std::vector<EntryText> user_metadata;    ///< of entries with metadata; in order
  std::vector<EntryText> compile_context;  ///< of entries with a non-empty context other than "N/A"; in order
  std::uint64_t unknown_times = 0;         ///< entries without a time
  std::uint64_t unreadable_entries = 0;    ///< without address or size: their action is `unknown`
};

/// A frame of code that torch.fx generated, with the fields added by `augment_with_fx_traces`.
struct GeneratedFrame {
  LocationId location;
  StringId node;   ///< of the graph, "linear_1"; invalid: missing
  StringId trace;  ///< the source lines of the program, as a traceback; invalid: missing
};

struct Snapshot {
  /// strings, locations, stacks. The outermost frame is the root of a stack. Until name_frames(), all locations are
  /// Python's: of a native frame with file "??" and line 0, a source, or a library and the offset in it as the line.
  Definitions definitions;
  std::vector<std::uint64_t> streams;  ///< handles; 0 = the default stream
  std::vector<PoolId> pools;           ///< [0] is the default
  bool entries_name_pools = false;     ///< older files name the pools of segments only
  std::vector<DeviceTrace> traces;     ///< of devices that have entries; in order of device
  std::vector<SnapshotSegment> segments;
  std::vector<Annotation> annotations;
  std::vector<GeneratedFrame> generated_frames;  ///< in order of location
  std::optional<AllocatorSettings> settings;     ///< torch 2.3 and later
  /// For a file that `tidemark export` made from a recording: names of the recorded devices, by number. Then sizes are
  /// sizes of blocks, and segments were invented around them.
  std::vector<Device> recorded_devices;
  std::map<std::string, std::uint64_t> unknown_keys;  ///< "trace.foo" → how many
  /// Known fields with values that PyTorch does not write there: first place, "device_traces[0][7].addr" → count.
  std::map<std::string, std::uint64_t> invalid_fields;
  std::map<std::string, std::uint64_t> unknown_actions;  ///< as written → how many

  /// Null for a device without entries.
  [[nodiscard]] const DeviceTrace* trace_of(std::int32_t device) const {
    const auto found =
        std::find_if(traces.begin(), traces.end(), [&](const DeviceTrace& trace) { return trace.device == device; });
    return found == traces.end() ? nullptr : &*found;
  }
};

}  // namespace tidemark::pytorch
