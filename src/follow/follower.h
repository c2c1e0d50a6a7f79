// Reads a recording while it is written: the file itself is the live event stream.
//
// Nothing is encoded twice or blocks: neither the program nor the recorder depends on readers, and unread data stays in
// the file. Memory grows with the recording's definitions (stacks, names) and with the blocks alive at one time, not
// with events.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "base/scoped_fd.h"
#include "follow/frame_scan.h"
#include "follow/kept_part.h"
#include "trace/reader.h"

namespace tidemark {

/// Some events, and the samples near them in the file.
struct FollowedBatch {
  std::vector<Event> events;
  std::vector<SampleRecord> samples;
  /// The events begin as in a recording without earlier data (docs/format.md, "Windows"): pass_over() has skipped those
  /// between the previous batch and this one.
  bool begins_anew = false;

  [[nodiscard]] bool empty() const { return events.empty() && samples.empty(); }

  /// Passes them to add() and add_sample() in order of time.
  template <typename Consumer>
  void deliver_to(Consumer& consumer) const {
    std::size_t sample = 0;
    for (const Event& event : events) {
      while (sample < samples.size() && time_of(samples[sample]) < event.time_ns)
        consumer.add_sample(samples[sample++]);
      consumer.add(event);
    }
    while (sample < samples.size()) consumer.add_sample(samples[sample++]);
  }
};

enum class FollowState : std::uint8_t {
  growing,        ///< there may be more; on file systems without locks also if the recorder was killed
  ended,          ///< as the recorder ended it
  recorder_gone,  ///< there is no writer and no end: the recorder was killed
  changed,        ///< earlier data is gone, or invalid data follows: only reading from the beginning may help
};
inline constexpr EnumName<FollowState> kFollowStateNames[] = {{FollowState::growing, "growing"},
                                                              {FollowState::ended, "ended"},
                                                              {FollowState::recorder_gone, "recorder_gone"},
                                                              {FollowState::changed, "changed"}};

/// Not thread-safe.
class Follower {
 public:
  /// Fails if the file cannot be opened, or is not a regular file. It may be new and empty: next() reports errors in
  /// its content.
  static Result<std::unique_ptr<Follower>> open(const std::string& path);
  /// `path` as a recorder names it (LiveRecording): a segment stands for its whole window, from the oldest segment on
  /// and into later ones. They are read as one recording that begins where the window began.
  static Result<std::unique_ptr<Follower>> open_live(const std::string& path) { return open_live(path, false); }
  /// For a window: begins at the latest place at which a reader can begin. Other recordings are read as a whole.
  static Result<std::unique_ptr<Follower>> open_latest(const std::string& path) { return open_live(path, true); }

  /// Replaces `batch` by the next one, one or two frames. False if there is nothing for now: then state() shows whether
  /// to try again. Never waits. Fails if the file is not a recording, or cannot be read.
  Result<bool> next(FollowedBatch& batch);

  /// Reads the headers of frames written since the last call, ahead of next(), without their events, and adds their
  /// totals. False if there are more frames to scan.
  bool scan_ahead(ScannedPart& part);
  /// Whether scan_ahead() has found a place at which a reader can begin, after the data read by next().
  [[nodiscard]] bool can_pass_over() const;
  /// Makes next() continue at that place. For a window: use open_latest().
  void pass_over();
  /// Events skipped so far.
  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_ + (reader_ ? reader_->passed_over() : 0); }

  [[nodiscard]] FollowState state() const { return state_; }
  /// Whether the path now names another file or none: the file was renamed, deleted, or replaced by another recording.
  [[nodiscard]] bool lost_its_name() const;
  /// For a window: all original segments are gone. To bound memory by the window's size, read it again from its
  /// beginning.
  [[nodiscard]] bool moved_on() const { return part_ != nullptr && part_->moved_on(); }
  [[nodiscard]] bool is_kept_part() const { return part_ != nullptr; }

  /// Everything defined so far; losses are complete once state() is no longer `growing`.
  [[nodiscard]] const Definitions& definitions() const;
  /// As TraceReader::forget_marks_before().
  void forget_marks_before(std::uint64_t time_ns);

  /// For a window: its folder.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Bytes read so far.
  [[nodiscard]] std::uint64_t offset() const { return reader_ ? reader_->offset() : 0; }
  /// Unread bytes in the file.
  [[nodiscard]] std::uint64_t behind() const;

 private:
  Follower(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  static Result<std::unique_ptr<Follower>> open_live(const std::string& path, bool latest);

  [[nodiscard]] std::uint64_t file_bytes() const;
  /// False if the file's header is incomplete.
  Result<bool> start();
  /// Fills `batch` up to the end of the file.
  Result<void> read(FollowedBatch& batch);
  /// There is nothing for now. Returns whether to read once more.
  bool check_writer();
  void finish(FollowState state);

  ScopedFd fd_;
  std::string path_;
  std::shared_ptr<KeptPart> part_;       // null: a single file
  std::unique_ptr<TraceReader> reader_;  // null until the header is read
  std::vector<Event> ahead_;             // read, for the next batch
  FrameScan scan_{format::kFileHeaderBytes};
  std::optional<std::uint64_t> state_ahead_;  // offset of the latest state frame found
  std::uint64_t passed_over_ = 0;             // events of `ahead_`
  bool passes_over_ = false;                  // up to the next events
  std::chrono::steady_clock::time_point probed_;
  bool writer_gone_ = false;
  FollowState state_ = FollowState::growing;
};

}  // namespace tidemark
