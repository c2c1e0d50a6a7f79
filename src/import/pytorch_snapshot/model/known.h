// The keys and values of a snapshot that mean something here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "import/pytorch_snapshot/pickle/value.h"

namespace tidemark::pytorch {

/// Ids of the texts in TextTable, in the order of kKnownTexts.
enum class Known : std::uint32_t {
  empty,
  not_available,
  // trace entries
  action,
  addr,
  device_free,
  size,
  stream,
  time_us,
  compile_context,
  user_metadata,
  internal_metadata,
  pool_id,
  frames,
  // frames
  filename,
  line,
  name,
  fx_node_op,
  fx_node_name,
  fx_node_target,
  fx_node_info,
  fx_original_trace,
  // blocks
  address,
  requested_size,
  state,
  history,
  real_size,
  // segments
  device,
  total_size,
  allocated_size,
  active_size,
  segment_type,
  segment_pool_id,
  is_expandable,
  blocks,
  // annotations
  stage,
  start,
  end,
  // the snapshot
  segments,
  device_traces,
  external_annotations,
  allocator_settings,
  host_segments,
  host_traces,
  tidemark_devices,
  // settings
  cuda_alloc_conf,
  alloc_conf,
  max_split_size,
  garbage_collection_threshold,
  expandable_segments,
  roundup_power2_divisions,
  // segment types
  small,
  large,
  // states
  active_allocated,
  active_pending_free,
  active_awaiting_free,
  inactive,
  // actions, in the order of Action
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  snapshot,
  oom,
  user_defined,
  annotate,
  count,
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(Known::count)> kKnownTexts = {
    "",
    "N/A",
    "action",
    "addr",
    "device_free",
    "size",
    "stream",
    "time_us",
    "compile_context",
    "user_metadata",
    "internal_metadata",
    "pool_id",
    "frames",
    "filename",
    "line",
    "name",
    "fx_node_op",
    "fx_node_name",
    "fx_node_target",
    "fx_node_info",
    "fx_original_trace",
    "address",
    "requested_size",
    "state",
    "history",
    "real_size",
    "device",
    "total_size",
    "allocated_size",
    "active_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "stage",
    "START",
    "END",
    "segments",
    "device_traces",
    "external_annotations",
    "allocator_settings",
    "host_segments",
    "host_traces",
    "tidemark_devices",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
    "roundup_power2_divisions",
    "small",
    "large",
    "active_allocated",
    "active_pending_free",
    "active_awaiting_free",
    "inactive",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
    "user_defined",
    "annotate",
};
static_assert(kKnownTexts.back() == "annotate", "one text for each id");

/// Known::count or more for unknown text, or for other values.
[[nodiscard]] constexpr Known known(PickleValue value) {
  return value.tag() == Tag::text ? static_cast<Known>(value.id()) : Known::count;
}

}  // namespace tidemark::pytorch
