// A recording and the values in its results in words, the same in every report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording_info.h"

namespace tidemark {

/// "45.1%".
[[nodiscard]] std::string share_text(double share);
/// The same, or "n/a".
[[nodiscard]] std::string share_text(const std::optional<double>& share);

/// "at 3.210 s", or "n/a".
[[nodiscard]] std::string at_text(const std::optional<std::uint64_t>& time_ns);

/// "1.5 GiB (1,610,612,736 bytes)".
[[nodiscard]] std::string exact_text(std::uint64_t bytes);

/// "1.5 GiB (1,610,612,736 bytes) at 2.0 s"; without a time, the rounded size only.
[[nodiscard]] std::string peak_text(std::uint64_t bytes, const std::optional<std::uint64_t>& at_ns);

/// "cuda:1: nothing allocated", with the time and the peak reserved bytes if there are any: the whole text for such a
/// device.
[[nodiscard]] std::string nothing_allocated_text(Device device, const std::optional<std::uint64_t>& at_ns = {},
                                                 const std::optional<std::uint64_t>& reserved = {});

/// "12.3 MiB", or "n/a".
[[nodiscard]] std::string bytes_text(const std::optional<std::uint64_t>& bytes);

/// A change with its sign: "+3.0 MiB", "-512 B", "0 B".
[[nodiscard]] std::string signed_text(std::int64_t change, std::string (*format)(std::uint64_t));
/// The same in bytes.
[[nodiscard]] std::string signed_bytes(std::int64_t change);

/// The arguments of a recorded program, which are known joined by spaces only: one with a space in it is several.
[[nodiscard]] std::vector<std::string> command_words(const RecordingInfo& recording);

/// The command of a recorded program, to be pasted into a shell. nullopt if it is not known well enough: a launcher
/// started it with variables that are not recorded, or it has characters that a shell interprets (a recording may be
/// another's).
[[nodiscard]] std::optional<std::string> pasted_command(const RecordingInfo& recording);

/// Name of a process: "rank 1", "rank 1, DataLoader worker 4712 of 4711", "pid 4711"; a snapshot's file. `child`:
/// whether it is known as a child of another recorded process.
[[nodiscard]] std::string process_name(const RecordingInfo& recording, bool child = false);

/// "rank 1 (pid 123) run.rank1.tide": distinguishes recordings if several are shown.
[[nodiscard]] std::string recording_title(const RecordingInfo& recording);

/// A fact about a recording: printable text.
struct Fact {
  const char* label;
  std::string value;
};
/// The program, its time and software; for a snapshot, its source.
[[nodiscard]] std::vector<Fact> recording_facts(const RecordingInfo& recording);

/// "2026-11-20 22:14:03 UTC", or "n/a".
[[nodiscard]] std::string wall_clock_text(const std::optional<std::uint64_t>& wall_ns);

/// States that the recording has no events, and the possible reason.
[[nodiscard]] std::string no_events_text(const RecordingInfo& recording);

/// "Only blocks with category activation.", as a line; nothing without a filter. `lists`: totals are of all blocks.
[[nodiscard]] std::string chosen_blocks_text(const RecordingInfo& recording, bool lists);

}  // namespace tidemark
