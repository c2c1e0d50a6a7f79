// The part that a flight recorder keeps of a recording (docs/flight-recorder.md), read while it moves on: its segments,
// one after the other, as the bytes of one recording.
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

/// Begins with the oldest segment that is there. Segments that follow are opened as soon as they are seen, the next one
/// before it is begun, so that they can be read when the window has moved on or the job has ended. Not thread-safe;
/// never waits.
class KeptPart {
 public:
  /// `segment`: a file of the window, which need not be there any more. Fails where no other is there either.
  static Result<std::shared_ptr<KeptPart>> open(const KeptSegment& segment);
  /// The same, but begins with the newest segment that is begun, and in that at its latest state frame.
  static Result<std::shared_ptr<KeptPart>> open_latest(const KeptSegment& segment);

  /// Puts what comes next into `out` and returns how many bytes; 0 where there is nothing for now, or at all. An error
  /// is that of a file that cannot be read, and names it.
  Result<std::size_t> read(std::span<std::byte> out);

  /// As those of Follower.
  bool scan_ahead(ScannedPart& part);
  [[nodiscard]] bool can_begin_later() const;

  /// Bytes in files that were not read yet.
  [[nodiscard]] std::uint64_t behind() const;
  /// Nobody writes the segment under way, and it has no end.
  [[nodiscard]] bool recorder_gone() const;
  /// Nobody writes any more: gives what is whole, and what is missing of it as losses.
  void stop_waiting();
  /// Something between two segments is missing: the window has moved on faster than it was read.
  [[nodiscard]] bool has_gap() const { return gap_; }
  /// All segments that were there at first are gone from it.
  [[nodiscard]] bool moved_on() const;
  [[nodiscard]] const std::string& folder() const { return latest_.folder; }

 private:
  struct Open {
    KeptSegment segment;
    ScopedFd fd;
  };

  explicit KeptPart(KeptSegment before_all) : latest_(std::move(before_all)) {}

  /// Opens what has come since.
  void find_segments();
  Result<bool> begin_next();
  /// One frame, or the step to the next segment. False where there is neither.
  Result<bool> advance();
  Result<bool> at_end_of_segment();
  /// Behind the end of a segment, which is not that of the program.
  [[nodiscard]] bool next_may_come() const;

  /// Leaves out all but the newest segment that is begun.
  void begin_with_newest();

  KeptSegment latest_;        ///< of those that were opened
  std::deque<Open> waiting_;  ///< opened, and not read yet
  std::string newest_at_first_;
  std::vector<std::byte> bytes_;  ///< joined, and not read yet
  std::unique_ptr<SegmentJoiner> joiner_;
  std::unique_ptr<TraceReader> reader_;          ///< of the segment under way
  ScopedFd fd_;                                  ///< likewise
  KeptSegment here_;                             ///< likewise
  std::optional<std::uint64_t> begin_at_state_;  ///< in the first segment
  KeptSegment scanned_;                          ///< up to where scan_ahead() has come
  std::optional<std::uint64_t> state_ahead_;     ///< offset of the latest state frame in that
  FrameScan scan_{format::kFileHeaderBytes};
  std::optional<std::uint64_t> earlier_end_ns_;
  std::chrono::steady_clock::time_point looked_at_;
  std::optional<std::chrono::steady_clock::time_point> ended_at_;  ///< of the segment under way: when that was seen
  bool gap_ = false;
  bool over_ = false;
};

/// As a stream, for a TraceReader that follows it.
[[nodiscard]] std::unique_ptr<ByteStream> make_kept_part_stream(std::shared_ptr<KeptPart> part);

}  // namespace tidemark
