// The table of data-quality issues: for each id its name, severity and unit, and whether it makes the data incomplete.
// docs/format.md and docs/commands/index.md list the same table; tests compare them with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/enum_names.h"
#include "trace/quality_id.h"

namespace tidemark {

/// Severity of an issue, in order: `info` explains, the others report problems.
enum class Severity : std::uint8_t { info, warning, error };

inline constexpr EnumName<Severity> kSeverityNames[] = {
    {Severity::info, "info"}, {Severity::warning, "warning"}, {Severity::error, "error"}};

/// Unit of QualityIssue::count.
enum class QualityUnit : std::uint8_t {
  none,  ///< there is no count
  allocations,
  blocks,
  bytes,
  calls,
  definitions,
  entries,  ///< of a snapshot's trace
  events,
  fields,
  frames,
  frees,
  losses,
  occurrences,
  pauses,
  processes,
  records,
  samples,
  segments,
  stacks,
  steps,  ///< of a clock
  threads,
};

inline constexpr EnumName<QualityUnit> kQualityUnitNames[] = {
    {QualityUnit::none, "none"},
    {QualityUnit::allocations, "allocations"},
    {QualityUnit::blocks, "blocks"},
    {QualityUnit::bytes, "bytes"},
    {QualityUnit::calls, "calls"},
    {QualityUnit::definitions, "definitions"},
    {QualityUnit::entries, "entries"},
    {QualityUnit::events, "events"},
    {QualityUnit::fields, "fields"},
    {QualityUnit::frames, "frames"},
    {QualityUnit::frees, "frees"},
    {QualityUnit::losses, "losses"},
    {QualityUnit::occurrences, "occurrences"},
    {QualityUnit::pauses, "pauses"},
    {QualityUnit::processes, "processes"},
    {QualityUnit::records, "records"},
    {QualityUnit::samples, "samples"},
    {QualityUnit::segments, "segments"},
    {QualityUnit::stacks, "stacks"},
    {QualityUnit::steps, "steps"},
    {QualityUnit::threads, "threads"},
};

struct QualityFacts {
  QualityId id;
  std::string_view name;  ///< stable, for machines
  Severity severity;
  QualityUnit unit;
  bool incomplete;  ///< whether events are missing or wrong (and not only their stacks or names)
};

/// In the order of QualityId.
inline constexpr QualityFacts kQualityTable[] = {
    {QualityId::ring_full, "ring_full", Severity::error, QualityUnit::events, true},
    {QualityId::reentrant, "reentrant", Severity::warning, QualityUnit::events, true},
    {QualityId::thread_limit, "thread_limit", Severity::error, QualityUnit::events, true},
    {QualityId::disk, "disk", Severity::error, QualityUnit::occurrences, true},
    {QualityId::size_limit, "size_limit", Severity::warning, QualityUnit::occurrences, true},
    {QualityId::python_unsupported, "python_unsupported", Severity::warning, QualityUnit::occurrences, false},
    {QualityId::native_unsupported, "native_unsupported", Severity::warning, QualityUnit::occurrences, false},
    {QualityId::stack_truncated, "stack_truncated", Severity::info, QualityUnit::stacks, false},
    {QualityId::recorder_gone, "recorder_gone", Severity::error, QualityUnit::occurrences, true},
    {QualityId::unknown_frames, "unknown_frames", Severity::warning, QualityUnit::frames, true},
    {QualityId::torn_tail, "torn_tail", Severity::warning, QualityUnit::bytes, true},
    {QualityId::invalid_records, "invalid_records", Severity::error, QualityUnit::records, true},
    {QualityId::device_lost, "device_lost", Severity::warning, QualityUnit::occurrences, false},
    {QualityId::driver_off, "driver_off", Severity::warning, QualityUnit::occurrences, false},
    {QualityId::driver_frees, "driver_frees", Severity::info, QualityUnit::calls, false},
    {QualityId::invalid_definitions, "invalid_definitions", Severity::error, QualityUnit::definitions, true},
    {QualityId::invalid_times, "invalid_times", Severity::error, QualityUnit::events, true},
    {QualityId::ring_corrupted, "ring_corrupted", Severity::error, QualityUnit::threads, true},
    {QualityId::unrecorded_processes, "unrecorded_processes", Severity::error, QualityUnit::processes, true},
    {QualityId::recorder_stopped, "recorder_stopped", Severity::error, QualityUnit::events, true},
    {QualityId::started_inside, "started_inside", Severity::info, QualityUnit::occurrences, false},
    {QualityId::audit_hooks, "audit_hooks", Severity::info, QualityUnit::occurrences, false},
    {QualityId::barred_threads, "barred_threads", Severity::error, QualityUnit::events, true},

    {QualityId::unknown_loss, "unknown_loss", Severity::warning, QualityUnit::losses, true},
    {QualityId::unknown_definitions, "unknown_definitions", Severity::warning, QualityUnit::definitions, true},
    {QualityId::unknown_samples, "unknown_samples", Severity::warning, QualityUnit::samples, true},
    {QualityId::too_many_devices, "too_many_devices", Severity::warning, QualityUnit::events, true},
    {QualityId::recorder_killed, "recorder_killed", Severity::error, QualityUnit::none, true},
    {QualityId::in_progress, "in_progress", Severity::info, QualityUnit::none, true},
    {QualityId::stopped_early, "stopped_early", Severity::info, QualityUnit::none, true},
    {QualityId::paused, "paused", Severity::info, QualityUnit::pauses, false},
    {QualityId::window, "window", Severity::info, QualityUnit::none, false},
    {QualityId::unmatched_frees, "unmatched_frees", Severity::info, QualityUnit::frees, false},
    {QualityId::baseline, "baseline", Severity::info, QualityUnit::bytes, false},
    {QualityId::missing_symbols, "missing_symbols", Severity::info, QualityUnit::frames, false},

    {QualityId::trace_start_lost, "trace_start_lost", Severity::warning, QualityUnit::segments, true},
    {QualityId::uncertain_sizes, "uncertain_sizes", Severity::warning, QualityUnit::blocks, false},
    {QualityId::guessed_sizes, "guessed_sizes", Severity::warning, QualityUnit::blocks, false},
    {QualityId::sizes_corrected, "sizes_corrected", Severity::info, QualityUnit::blocks, false},
    {QualityId::unknown_times, "unknown_times", Severity::warning, QualityUnit::entries, false},
    {QualityId::clock_steps_back, "clock_steps_back", Severity::info, QualityUnit::steps, false},
    {QualityId::no_settings, "no_settings", Severity::warning, QualityUnit::none, false},
    {QualityId::no_segments, "no_segments", Severity::warning, QualityUnit::none, false},
    {QualityId::unknown_frees, "unknown_frees", Severity::warning, QualityUnit::frees, true},
    {QualityId::double_frees, "double_frees", Severity::warning, QualityUnit::blocks, true},
    {QualityId::implied_requests, "implied_requests", Severity::warning, QualityUnit::frees, true},
    {QualityId::implied_completions, "implied_completions", Severity::warning, QualityUnit::frees, true},
    {QualityId::overlapping_blocks, "overlapping_blocks", Severity::warning, QualityUnit::allocations, true},
    {QualityId::unexplained_gaps, "unexplained_gaps", Severity::warning, QualityUnit::allocations, true},
    {QualityId::truncated_blocks, "truncated_blocks", Severity::warning, QualityUnit::blocks, true},
    {QualityId::missing_segments, "missing_segments", Severity::warning, QualityUnit::allocations, true},
    {QualityId::overlapping_segments, "overlapping_segments", Severity::warning, QualityUnit::segments, true},
    {QualityId::unknown_segments, "unknown_segments", Severity::warning, QualityUnit::segments, true},
    {QualityId::segments_in_use, "segments_in_use", Severity::warning, QualityUnit::segments, true},
    {QualityId::impossible_ranges, "impossible_ranges", Severity::warning, QualityUnit::entries, true},
    {QualityId::free_size_mismatches, "free_size_mismatches", Severity::warning, QualityUnit::frees, true},
    {QualityId::snapshot_mismatches, "snapshot_mismatches", Severity::warning, QualityUnit::entries, true},
    {QualityId::final_blocks_missing, "final_blocks_missing", Severity::warning, QualityUnit::blocks, true},
    {QualityId::final_blocks_extra, "final_blocks_extra", Severity::warning, QualityUnit::blocks, true},
    {QualityId::final_blocks_different, "final_blocks_different", Severity::warning, QualityUnit::blocks, true},
    {QualityId::final_segments_missing, "final_segments_missing", Severity::warning, QualityUnit::segments, true},
    {QualityId::final_segments_extra, "final_segments_extra", Severity::warning, QualityUnit::segments, true},
    {QualityId::impossible_device, "impossible_device", Severity::warning, QualityUnit::none, true},
    {QualityId::exported_recording, "exported_recording", Severity::info, QualityUnit::none, false},
    {QualityId::invalid_fields, "invalid_fields", Severity::warning, QualityUnit::fields, true},
    {QualityId::unknown_actions, "unknown_actions", Severity::warning, QualityUnit::entries, true},
    {QualityId::unknown_keys, "unknown_keys", Severity::info, QualityUnit::fields, false},
};

inline constexpr std::size_t kQualityIdCount = std::size(kQualityTable);

/// Whether `table` has an entry for each QualityId, in order.
template <typename Entry, std::size_t Count>
[[nodiscard]] consteval bool covers_every_quality_id(const Entry (&table)[Count]) {
  for (std::size_t index = 0; index < Count; ++index) {
    if (static_cast<std::size_t>(table[index].id) != index) return false;
  }
  return Count == static_cast<std::size_t>(QualityId::unknown_keys) + 1;
}
static_assert(covers_every_quality_id(kQualityTable));

[[nodiscard]] constexpr const QualityFacts& facts_of(QualityId id) {
  return kQualityTable[static_cast<std::size_t>(id)];
}
[[nodiscard]] constexpr std::string_view name_of(QualityId id) {
  return facts_of(id).name;
}
[[nodiscard]] constexpr std::string_view name_of(Severity severity) {
  return name_in(kSeverityNames, severity);
}
[[nodiscard]] constexpr std::string_view name_of(QualityUnit unit) {
  return name_in(kQualityUnitNames, unit);
}

struct QualityBytes {
  std::uint64_t bytes = 0;
  bool operator==(const QualityBytes&) const = default;
};
struct QualityDuration {
  std::uint64_t ns = 0;
  bool operator==(const QualityDuration&) const = default;
};
/// How often each name occurs.
using QualityNames = std::map<std::string, std::uint64_t>;
using QualityValue = std::variant<std::uint64_t, QualityBytes, QualityDuration, std::string, QualityNames>;

/// A value that the text of an issue mentions.
struct QualityParam {
  std::string_view name;  ///< a literal: "device", "limit", "bytes", …
  QualityValue value;
  bool operator==(const QualityParam&) const = default;
};

/// An issue of data quality. Numbers and names only: query/words formats the sentence.
struct QualityIssue {
  QualityId id;
  std::optional<std::uint64_t> count;  ///< in the unit of the table; nullopt if that is `none`
  std::vector<QualityParam> params = {};
  bool operator==(const QualityIssue&) const = default;
};

}  // namespace tidemark
