// A recording that is followed as a whole: each event is read once, and the state up to now is available at any time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "follow/follower.h"
#include "follow/recording_so_far.h"

namespace tidemark {

/// Not thread-safe.
class FollowedRecording {
 public:
  /// With more events, only totals are kept, unless all blocks are requested: the same limit as for reading the blocks
  /// of a file for their owners.
  static constexpr std::uint64_t kMaxEvents = 50'000'000;

  /// `path`: as for Follower::open_live(). `all_blocks`: keep the blocks of every recording. Otherwise only if blocks
  /// have owners, up to kMaxEvents: the file is read again from its beginning when they are found.
  static Result<std::unique_ptr<FollowedRecording>> open(const std::string& path, bool all_blocks);

  /// Reads the available data while `go_on()` returns true, which is called now and then. A changed file is read again
  /// from its beginning, and so is a kept window once all its original segments are gone: so the data covers between
  /// one and two times the window.
  Result<void> read(const std::function<bool()>& go_on);

  [[nodiscard]] FollowState state() const { return follower_->state(); }
  [[nodiscard]] const std::string& path() const { return follower_->path(); }
  [[nodiscard]] bool is_kept_part() const { return follower_->is_kept_part(); }
  [[nodiscard]] std::uint64_t offset() const { return follower_->offset(); }
  [[nodiscard]] std::uint64_t behind() const { return follower_->behind(); }
  [[nodiscard]] std::uint64_t event_count() const { return so_far_.event_count(); }
  /// Time of the last event, or of the end.
  [[nodiscard]] std::uint64_t now_ns() const;
  [[nodiscard]] const Definitions& definitions() const { return follower_->definitions(); }

  [[nodiscard]] bool keeps_blocks() const { return so_far_.keeps_blocks(); }
  /// As in RecordingSoFar; Source::growing is true while the recording goes on.
  [[nodiscard]] SampledOverview overview() const;
  [[nodiscard]] const Store& store();

 private:
  FollowedRecording(std::string path, std::unique_ptr<Follower> follower, bool all_blocks)
      : path_(std::move(path)), follower_(std::move(follower)), all_blocks_(all_blocks), so_far_(all_blocks) {}

  Result<void> start_again(bool keep_blocks);
  /// Reads again after the kept window has moved on.
  void catch_up();
  /// Starts or stops keeping blocks, as the recording requires.
  Result<void> choose_what_to_keep();

  std::string path_;
  std::unique_ptr<Follower> follower_;
  bool all_blocks_;
  RecordingSoFar so_far_;
  int restarts_ = 0;
};

}  // namespace tidemark
