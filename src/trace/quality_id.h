// Problems in the data of a recording or of an imported file. Names, severities and units are in trace/data_quality.h,
// texts in query/words/data_quality.cpp; both have one entry for each value, in this order. Header-only: the recorded
// process uses it too.
#pragma once

#include <cstdint>

namespace tidemark {

enum class QualityId : std::uint8_t {
  // Losses that a recording stores. The value is the code in the file (docs/format.md): it never changes, and new ones
  // go to the end of this part.
  ring_full = 0,
  reentrant = 1,
  thread_limit = 2,
  disk = 3,
  size_limit = 4,
  python_unsupported = 5,
  native_unsupported = 6,
  stack_truncated = 7,
  recorder_gone = 8,
  unknown_frames = 9,
  torn_tail = 10,
  invalid_records = 11,
  device_lost = 12,
  driver_off = 13,
  driver_frees = 14,
  invalid_definitions = 15,
  invalid_times = 16,
  ring_corrupted = 17,
  unrecorded_processes = 18,
  recorder_stopped = 19,
  started_inside = 20,
  audit_hooks = 21,
  barred_threads = 22,

  // Found when a recording is read.
  unknown_loss,
  unknown_definitions,
  unknown_samples,
  too_many_devices,
  recorder_killed,
  in_progress,
  stopped_early,
  paused,
  window,
  unmatched_frees,
  baseline,
  missing_symbols,

  // Found when a PyTorch snapshot is imported.
  trace_start_lost,
  uncertain_sizes,
  guessed_sizes,
  sizes_corrected,
  unknown_times,
  clock_steps_back,
  no_settings,
  no_segments,
  unknown_frees,
  double_frees,
  implied_requests,
  implied_completions,
  overlapping_blocks,
  unexplained_gaps,
  truncated_blocks,
  missing_segments,
  overlapping_segments,
  unknown_segments,
  segments_in_use,
  impossible_ranges,
  free_size_mismatches,
  snapshot_mismatches,
  final_blocks_missing,
  final_blocks_extra,
  final_blocks_different,
  final_segments_missing,
  final_segments_extra,
  impossible_device,
  exported_recording,
  invalid_fields,
  unknown_actions,
  unknown_keys,
};

/// Codes below this one are losses that a recording stores.
inline constexpr std::uint8_t kStoredLossCount = static_cast<std::uint8_t>(QualityId::unknown_loss);

}  // namespace tidemark
