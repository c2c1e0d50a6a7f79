// The window that a flight recorder keeps of a recording (docs/flight-recorder.md), read while it moves on: its
// segments, one after the other, as the bytes of one recording.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/result.h"
#include "base/scoped_fd.h"
#include "collect/recorder/live/kept_folder.h"
#include "follow/frame_scan.h"
#include "trace/reader.h"
#include "trace/segment_joiner.h"

namespace tidemark {

/// Begins with the oldest existing segment. Later segments are opened as soon as they are seen, the next one before it
/// begins, so that they can be read when the window has moved on or the job has ended. Not thread-safe; never waits.
class KeptPart {
 public:
  /// `segment`: a file of the window, which may be gone. Fails if there is no other file either.
  static Result<std::shared_ptr<KeptPart>> open(const KeptSegment& segment);
  /// The same, but begins at the latest state frame of the newest segment that has begun.
  static Result<std::shared_ptr<KeptPart>> open_latest(const KeptSegment& segment);

  /// Reads the next bytes into `out` and returns their number; 0 if there are none for now, or at all. An error names
  /// the file that cannot be read.
  Result<std::size_t> read(std::span<std::byte> out);

  /// As in Follower.
  bool scan_ahead(ScannedPart& part);
  [[nodiscard]] bool can_begin_later() const;

  /// Unread bytes in the files.
  [[nodiscard]] std::uint64_t behind() const;
  /// The current segment has no writer and no end.
  [[nodiscard]] bool recorder_gone() const;
  /// There is no writer any more: returns the complete data, and the missing data as losses.
  void stop_waiting();
  /// Data between two segments is missing: the window has moved on faster than it was read.
  [[nodiscard]] bool has_gap() const { return gap_; }
  /// All original segments are gone.
  [[nodiscard]] bool moved_on() const;
  [[nodiscard]] const std::string& folder() const { return latest_.folder; }

 private:
  struct Open {
    KeptSegment segment;
    ScopedFd fd;
  };

  explicit KeptPart(KeptSegment before_all) : latest_(std::move(before_all)) {}

  /// Opens new segments.
  void find_segments();
  Result<bool> begin_next();
  /// Joins one frame, or moves to the next segment. False if there is neither.
  Result<bool> advance();
  Result<bool> at_end_of_segment();
  /// At the end of a segment that is not the end of the program.
  [[nodiscard]] bool next_may_come() const;

  /// Skips all but the newest segment that has begun.
  void begin_with_newest();

  KeptSegment latest_;        ///< the latest opened
  std::deque<Open> waiting_;  ///< opened, not read yet
  std::string newest_at_first_;
  std::vector<std::byte> bytes_;  ///< joined, not read yet
  std::unique_ptr<SegmentJoiner> joiner_;
  std::unique_ptr<TraceReader> reader_;          ///< of the current segment
  ScopedFd fd_;                                  ///< of the current segment
  KeptSegment here_;                             ///< the current segment
  std::optional<std::uint64_t> begin_at_state_;  ///< in the first segment
  KeptSegment scanned_;                          ///< the segment that scan_ahead() has reached
  std::optional<std::uint64_t> state_ahead_;     ///< offset of its latest state frame
  FrameScan scan_{format::kFileHeaderBytes};
  std::optional<std::uint64_t> earlier_end_ns_;
  std::chrono::steady_clock::time_point looked_at_;
  std::optional<std::chrono::steady_clock::time_point> ended_at_;  ///< when the end of the current segment was seen
  bool gap_ = false;
  bool over_ = false;
};

/// As a stream, for a TraceReader that follows it.
[[nodiscard]] std::unique_ptr<ByteStream> make_kept_part_stream(std::shared_ptr<KeptPart> part);

}  // namespace tidemark
