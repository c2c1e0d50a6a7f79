// Results as comma-separated values (RFC 4180, with \n line ends). Unknown values are empty fields.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analyze/common/result_table.h"
#include "analyze/sweep/sweep.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/table.h"
#include "analyze/usage/temporary.h"

namespace tidemark {

/// One row for each group. Columns: file, rank, device, at_ns, <grouping>, bytes, blocks, share; by stack also all
/// frames, outermost first, separated by ';'.
[[nodiscard]] std::string to_csv(std::span<const Table> tables);

/// One row for each stack. Columns: file, rank, device, stack, frames (as above), count, bytes, largest_bytes, share.
[[nodiscard]] std::string to_csv(std::span<const Temporary> results);

/// One row for each owner of the first group, category, phase and confidence. Columns: file, rank, device, at_ns,
/// <grouping>, category, phase, confidence, bytes, block_count.
[[nodiscard]] std::string to_csv(std::span<const Breakdown> results);

/// One row for each point. Columns: file, rank, device, time_ns, allocated_bytes, reserved_bytes; with layers, one row
/// for each layer at each point: file, rank, device, time_ns, stack, frames (or <grouping>), held_bytes.
[[nodiscard]] std::string to_csv(std::span<const Timeline> timelines);

/// One row for each row of the tables. Columns: file, rank, device, and the tables' keys; a stack is "stack,frames".
[[nodiscard]] std::string to_csv(std::span<const ResultTable> tables);

/// One row for each configuration. Columns: gpu, the arguments by their names, fits, peak_allocated_bytes,
/// peak_reserved_bytes, device_used_bytes, out_of_memory, predicted_fits, predicted_peak_allocated_bytes,
/// predicted_peak_reserved_bytes, failure, duration_ns, host_bytes, folder.
[[nodiscard]] std::string to_csv(const Sweep& sweep);
/// "FILE,RANK", the first fields of every row.
[[nodiscard]] std::string recording_fields(const RecordingInfo& recording);
/// "STACK,FRAMES": on one line, and all frames, outermost first, separated by ';'.
[[nodiscard]] std::string stack_fields(const NamedStack& stack);

/// Text from a recording as one field of a row: printable, quoted (RFC 4180) if it would break the row, and prefixed by
/// ' if it begins with =, +, - or @, so that no spreadsheet runs it as a formula. Not for numbers.
[[nodiscard]] std::string csv_field(const std::string& raw);

/// ",123" and ",true": a field with the comma before it; empty if unknown.
[[nodiscard]] std::string number_field(const std::optional<std::uint64_t>& number);
[[nodiscard]] std::string yes_field(const std::optional<bool>& value);

}  // namespace tidemark
