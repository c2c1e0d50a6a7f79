// Goes over a recording file from frame header to frame header, ahead of whoever reads its events: what they come to,
// and where a reader can begin anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trace/running_totals.h"

namespace tidemark {

/// What a scan has found since somebody took it. Peaks are those of all frames of totals that it came by.
struct ScannedPart {
  std::optional<RunningTotals> totals;        ///< the latest; `events` of all; none: no frame of them
  std::optional<std::uint64_t> state_offset;  ///< of the latest state frame, in the file

  /// What comes behind it.
  void add(const RunningTotals& next);
};

/// Of one file; reads some 100 bytes of the file for 16,384 events. Not thread-safe.
class FrameScan {
 public:
  /// Frames in one call of advance(), at most: some milliseconds.
  static constexpr std::size_t kMaxFrames = 20'000;

  /// `offset`: where a frame begins.
  explicit FrameScan(std::uint64_t offset) : offset_(offset) {}

  /// Goes on over the frames that the file has whole, and adds to `part`. False where more of them are left. What is no
  /// frame is not passed: whoever reads the events finds out.
  bool advance(int fd, ScannedPart& part);
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

 private:
  std::uint64_t offset_;
};

}  // namespace tidemark
