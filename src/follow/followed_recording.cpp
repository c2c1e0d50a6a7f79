#include "follow/followed_recording.h"

#include <fmt/format.h>

#include <utility>

#include "analyze/attribution/attributed_store.h"

namespace tidemark {
namespace {

// A recorder with a full disk replaces its last frames once. A file that changes more often is given up.
constexpr int kMaxRestarts = 3;

}  // namespace

Result<std::unique_ptr<FollowedRecording>> FollowedRecording::open(const std::string& path, bool all_blocks) {
  auto follower = Follower::open_live(path);
  if (!follower) return follower.error();
  return std::unique_ptr<FollowedRecording>(new FollowedRecording(path, std::move(*follower), all_blocks));
}

Result<void> FollowedRecording::start_again(bool keep_blocks) {
  auto follower = Follower::open_live(path_);
  if (!follower) return follower.error();
  follower_ = std::move(*follower);
  so_far_ = RecordingSoFar(keep_blocks);
  return {};
}

void FollowedRecording::catch_up() {
  if (state() != FollowState::growing || !follower_->moved_on()) return;
  // All files are deleted at the end of the job: then the last frame read is the end.
  if (start_again(so_far_.keeps_blocks())) restarts_ = 0;
}

Result<void> FollowedRecording::choose_what_to_keep() {
  if (so_far_.full()) {
    return Error{fmt::format("{}: more events than fit in memory indexes (4,294,967,294)", path_)};
  }
  if (all_blocks_) return {};
  const bool few = so_far_.event_count() <= kMaxEvents;
  if (so_far_.keeps_blocks() && !few) so_far_.drop_blocks();
  const bool wanted = few && has_attribution(definitions());
  return wanted && !so_far_.keeps_blocks() ? start_again(true) : Result<void>();
}

Result<void> FollowedRecording::read(const std::function<bool()>& go_on) {
  FollowedBatch batch;
  catch_up();
  while (go_on()) {
    const auto more = follower_->next(batch);
    if (!more) return more.error();
    if (*more) {
      batch.deliver_to(so_far_);
      if (auto chosen = choose_what_to_keep(); !chosen) return chosen;
    } else if (state() == FollowState::changed && restarts_ < kMaxRestarts && !follower_->lost_its_name()) {
      ++restarts_;
      auto again = start_again(so_far_.keeps_blocks());
      if (!again) return is_kept_part() ? Result<void>() : again;  // its job has ended; the data read so far is final
    } else {
      return {};
    }
  }
  return {};
}

std::uint64_t FollowedRecording::now_ns() const {
  return so_far_.now_ns(definitions());
}

SampledOverview FollowedRecording::overview() const {
  SampledOverview overview = so_far_.overview(path(), definitions());
  overview.source.growing = state() == FollowState::growing;
  return overview;
}

const Store& FollowedRecording::store() {
  return so_far_.store(path(), definitions(), state() == FollowState::growing);
}

}  // namespace tidemark
