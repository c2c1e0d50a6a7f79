// Reads a recording while it is written: the file itself is the live event stream.
//
// Nothing is encoded twice and nobody waits: neither the program nor the recorder knows of the readers, and what a
// reader has not read yet lies in the file. Memory grows with what the recording defines (stacks, names) and with the
// blocks alive at one time, not with events.
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

/// Some events, and the samples that stand near them in the file.
struct FollowedBatch {
  std::vector<Event> events;
  std::vector<SampleRecord> samples;
  /// The events begin as a recording does that knows nothing else of the time before (docs/format.md, "Windows"):
  /// pass_over() has left out what lies between them and those of the batch before.
  bool begins_anew = false;

  [[nodiscard]] bool empty() const { return events.empty() && samples.empty(); }

  /// Hands them over in order of time, as add() and add_sample().
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
  growing,        ///< there may be more; on file systems without locks also when the recorder was killed
  ended,          ///< as the recorder ended it
  recorder_gone,  ///< nobody writes it, and it has no end: the recorder was killed
  changed,  ///< what was read before is no longer there, or nonsense follows: only reading it anew helps, if anything
};
inline constexpr EnumName<FollowState> kFollowStateNames[] = {{FollowState::growing, "growing"},
                                                              {FollowState::ended, "ended"},
                                                              {FollowState::recorder_gone, "recorder_gone"},
                                                              {FollowState::changed, "changed"}};

/// Not thread-safe.
class Follower {
 public:
  /// Fails where the file cannot be opened, or is no regular file. It may have been created a moment ago: what is wrong
  /// with its content, next() says.
  static Result<std::unique_ptr<Follower>> open(const std::string& path);
  /// As a recorder names it (LiveRecording): a file of a part that is kept stands for all of that, from its oldest file
  /// on and into the later ones. What is read then is one recording that begins where the kept part began.
  static Result<std::unique_ptr<Follower>> open_live(const std::string& path) { return open_live(path, false); }
  /// Of a part that is kept: from the latest place on where a reader can begin. Another recording is read as a whole.
  static Result<std::unique_ptr<Follower>> open_latest(const std::string& path) { return open_live(path, true); }

  /// Replaces `batch` by what comes next, a frame's worth or two. False where there is nothing for now: then state()
  /// says whether to ask again. Never waits. Fails for what is no recording, and where reading does.
  Result<bool> next(FollowedBatch& batch);

  /// Looks at the frames that were written since the last call, ahead of what next() has read, without their events.
  /// Adds what they come to. False where there is more to look at.
  bool scan_ahead(ScannedPart& part);
  /// Whether scan_ahead() has found a place where a reader can begin, behind what next() has read.
  [[nodiscard]] bool can_pass_over() const;
  /// Has next() go on at that place. Of a part that is kept: use open_latest().
  void pass_over();
  /// Events that were passed over so far.
  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_ + (reader_ ? reader_->passed_over() : 0); }

  [[nodiscard]] FollowState state() const { return state_; }
  /// Whether the file is no longer what its path names: it was renamed, deleted, or replaced by another recording.
  [[nodiscard]] bool lost_its_name() const;
  /// Of a part that is kept: nothing of what was kept at first is kept any more. Whoever wants no more than is kept, or
  /// no more memory than that takes, reads anew.
  [[nodiscard]] bool moved_on() const { return part_ != nullptr && part_->moved_on(); }
  [[nodiscard]] bool is_kept_part() const { return part_ != nullptr; }

  /// Everything defined so far; what is missing is known once state() is no longer `growing`.
  [[nodiscard]] const Definitions& definitions() const;
  /// As TraceReader::forget_marks_before().
  void forget_marks_before(std::uint64_t time_ns);

  /// Of a part that is kept: its folder.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Bytes read so far.
  [[nodiscard]] std::uint64_t offset() const { return reader_ ? reader_->offset() : 0; }
  /// Bytes that are in the file and not read yet.
  [[nodiscard]] std::uint64_t behind() const;

 private:
  Follower(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  static Result<std::unique_ptr<Follower>> open_live(const std::string& path, bool latest);

  [[nodiscard]] std::uint64_t file_bytes() const;
  /// False where the file's header is not whole yet.
  Result<bool> start();
  /// Fills `batch` as far as the file goes.
  Result<void> read(FollowedBatch& batch);
  /// Nothing comes for now. Returns whether it is worth reading once more.
  bool check_writer();
  void finish(FollowState state);

  ScopedFd fd_;
  std::string path_;
  std::shared_ptr<KeptPart> part_;       // null: of a single file
  std::unique_ptr<TraceReader> reader_;  // null until the header is there
  std::vector<Event> ahead_;             // read, and of the next batch
  FrameScan scan_{format::kFileHeaderBytes};
  std::optional<std::uint64_t> state_ahead_;  // offset of the latest state frame that was found
  std::uint64_t passed_over_ = 0;             // of `ahead_`
  bool passes_over_ = false;                  // up to the next events
  std::chrono::steady_clock::time_point probed_;
  bool writer_gone_ = false;
  FollowState state_ = FollowState::growing;
};

}  // namespace tidemark
