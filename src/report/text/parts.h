// What the text reports share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/data_quality.h"
#include "analyze/common/recording.h"
#include "report/text/terminal.h"

namespace tidemark {

/// "45.1%".
[[nodiscard]] std::string share_text(double share);
/// The same, or "n/a".
[[nodiscard]] std::string share_text(const std::optional<double>& share);

/// "  label           value\n": the labels of a list of facts are as wide as one another.
[[nodiscard]] std::string fact(const char* label, const std::string& value);

/// "at 3.210 s", or "n/a".
[[nodiscard]] std::string at_text(const std::optional<std::uint64_t>& time_ns);

/// "12.3 MiB", or "n/a".
[[nodiscard]] std::string bytes_text(const std::optional<std::uint64_t>& bytes);

/// Something to know about a recording: printable text.
struct Fact {
  const char* label;
  std::string value;
};
/// What ran, when, and with what software; for a snapshot, what it is.
[[nodiscard]] std::vector<Fact> recording_facts(const RecordingInfo& recording);

/// "2026-11-20 22:14:03 UTC", or "n/a" for 0.
[[nodiscard]] std::string wall_clock_text(const std::optional<std::uint64_t>& wall_ns);

/// "Data quality: complete", or its issues, one a line.
[[nodiscard]] std::string quality_text(const DataQuality& quality, const Terminal& terminal);

/// One line for reports other than the summary: nothing when the recording is complete, else that it is not.
[[nodiscard]] std::string quality_hint(const RecordingInfo& recording, const Terminal& terminal);

/// States that the recording has no events, and the possible reason.
[[nodiscard]] std::string no_events_text(const RecordingInfo& recording);

/// States that no block is alive.
[[nodiscard]] std::string nothing_alive_text();

}  // namespace tidemark
