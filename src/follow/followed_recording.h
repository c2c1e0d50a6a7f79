// A recording that is followed as a whole: each event is read once, and the state up to now can be asked for at any
// time.
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
  /// More events than this are kept as totals only, unless all blocks are asked for: as many as a file has whose blocks
  /// are read for their owners.
  static constexpr std::uint64_t kMaxEvents = 50'000'000;

  /// `path`: as Follower::open_live() takes it. `all_blocks`: those of every recording are kept. Otherwise of one whose
  /// blocks have owners, up to kMaxEvents: it is read from its beginning again when that is found.
  static Result<std::unique_ptr<FollowedRecording>> open(const std::string& path, bool all_blocks);

  /// Reads what there is, for as long as `go_on()`, which is asked now and then. A file that changed is read from its
  /// beginning again, and so is a part that is kept once nothing of it is that was kept at first: between one and two
  /// times what is kept is known.
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
  /// As RecordingSoFar has them; Source::growing says whether it goes on.
  [[nodiscard]] SampledOverview overview() const;
  [[nodiscard]] const Store& store();

 private:
  FollowedRecording(std::string path, std::unique_ptr<Follower> follower, bool all_blocks)
      : path_(std::move(path)), follower_(std::move(follower)), all_blocks_(all_blocks), so_far_(all_blocks) {}

  Result<void> start_again(bool keep_blocks);
  /// Where the part that is kept has moved on.
  void catch_up();
  /// Keeps blocks from now on, or no longer, as the recording is found to be.
  Result<void> choose_what_to_keep();

  std::string path_;
  std::unique_ptr<Follower> follower_;
  bool all_blocks_;
  RecordingSoFar so_far_;
  int restarts_ = 0;
};

}  // namespace tidemark
