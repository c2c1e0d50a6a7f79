// Scans the frame headers of a recording file, ahead of the reader of its events: for running totals, and for places at
// which a reader can begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trace/running_totals.h"

namespace tidemark {

/// The results of a scan. Peaks are those of all frames of totals that it has passed.
struct ScannedPart {
  std::optional<RunningTotals> totals;        ///< the latest; `events` of all; std::nullopt: no such frame
  std::optional<std::uint64_t> state_offset;  ///< offset in the file of the latest state frame

  /// Adds the totals of a later frame.
  void add(const RunningTotals& next);
};

/// For one file; reads some 100 bytes of the file for 16,384 events. Not thread-safe.
class FrameScan {
 public:
  /// At most this many frames in one call of advance(): some milliseconds.
  static constexpr std::size_t kMaxFrames = 20'000;

  /// `offset`: the beginning of a frame.
  explicit FrameScan(std::uint64_t offset) : offset_(offset) {}

  /// Scans the complete frames of the file and adds to `part`. False if there are more. Stops at invalid data, which
  /// the reader of the events will report.
  bool advance(int fd, ScannedPart& part);
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

 private:
  std::uint64_t offset_;
};

}  // namespace tidemark
