#include "follow/follower.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/byte_stream.h"
#include "base/locked_file.h"
#include "base/regular_file.h"
#include "trace/format.h"

namespace tidemark {
namespace {

// A test of the writer's lock holds it for a moment once the writer is gone.
constexpr std::chrono::milliseconds kProbeAgain{500};
// A program without allocations may write only samples.
constexpr std::size_t kMaxSamples = 4096;

const Definitions kNothingDefined;

}  // namespace

Result<std::unique_ptr<Follower>> Follower::open(const std::string& path) {
  auto fd = open_regular_file(path);
  if (!fd) return Error{fmt::format("{}: {}", path, fd.error().message)};
  return std::unique_ptr<Follower>(new Follower(std::move(*fd), path));
}

Result<std::unique_ptr<Follower>> Follower::open_live(const std::string& path, bool latest) {
  const auto segment = kept_segment(path);
  if (!segment) return open(path);
  auto part = latest ? KeptPart::open_latest(*segment) : KeptPart::open(*segment);
  if (!part) return part.error();
  std::unique_ptr<Follower> follower(new Follower(ScopedFd(), segment->folder));
  follower->part_ = std::move(*part);
  return follower;
}

std::uint64_t Follower::file_bytes() const {
  struct ::stat facts {};
  return ::fstat(fd_.get(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

std::uint64_t Follower::behind() const {
  if (part_) return part_->behind();
  const std::uint64_t size = file_bytes();
  return size - std::min(size, offset());
}

bool Follower::lost_its_name() const {
  return !part_ && !has_name(fd_, path_);
}

const Definitions& Follower::definitions() const {
  return reader_ ? reader_->definitions() : kNothingDefined;
}

void Follower::forget_marks_before(std::uint64_t time_ns) {
  if (reader_) reader_->forget_marks_before(time_ns);
}

bool Follower::scan_ahead(ScannedPart& part) {
  if (part_) return part_->scan_ahead(part);
  if (scan_.offset() < offset()) scan_ = FrameScan(offset());  // the reader is at the end of a frame
  const bool all = scan_.advance(fd_.get(), part);
  if (part.state_offset) state_ahead_ = part.state_offset;
  return all;
}

bool Follower::can_pass_over() const {
  if (part_) return part_->can_begin_later();
  return reader_ != nullptr && state_ahead_ && *state_ahead_ >= offset();
}

void Follower::pass_over() {
  if (part_ || !can_pass_over()) return;
  passed_over_ += ahead_.size();
  ahead_.clear();
  reader_->pass_over_until(*state_ahead_);
  passes_over_ = true;
}

Result<bool> Follower::start() {
  if (!part_ && file_bytes() < format::kFileHeaderBytes && !writer_gone_) return false;
  auto stream =
      part_ ? make_kept_part_stream(part_) : make_file_stream(ScopedFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)), path_);
  auto reader = TraceReader::follow(std::move(stream));
  if (!reader) return reader.error();
  reader_ = std::move(*reader);
  return true;
}

// Samples are written after the events of their time: read up to the next events to find them.
Result<void> Follower::read(FollowedBatch& batch) {
  batch.events = std::exchange(ahead_, {});
  reader_->observe_samples([&batch](const SampleRecord& sample) { batch.samples.push_back(sample); });
  Frame frame;
  std::vector<Event> events;
  Result<void> done;
  while (batch.samples.size() < kMaxSamples) {
    const Result<bool> more = reader_->next_frame(frame, events);
    if (!more) done = more.error();
    if (!more || !*more) break;
    if (events.empty()) continue;
    if (batch.events.empty()) batch.begins_anew = std::exchange(passes_over_, false);
    std::swap(batch.events.empty() ? batch.events : ahead_, events);
    if (!ahead_.empty()) break;
  }
  reader_->observe_samples({});
  return done;
}

void Follower::finish(FollowState state) {
  if (reader_) {
    FollowedBatch nothing;
    if (part_) part_->stop_waiting();
    reader_->stop_waiting();
    static_cast<void>(read(nothing));
  }
  state_ = state;
}

bool Follower::check_writer() {
  const bool replaced = part_ ? part_->has_gap() : file_bytes() < offset();
  if (reader_ && (reader_->finished() || replaced)) {
    finish(definitions().end ? FollowState::ended : FollowState::changed);
    return false;
  }
  if (reader_ && definitions().end) {
    finish(FollowState::ended);
    return false;
  }
  if (writer_gone_) {
    finish(FollowState::recorder_gone);
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - probed_ < kProbeAgain) return false;
  probed_ = now;
  writer_gone_ = part_ ? part_->recorder_gone() : probe_lock(fd_) == LockState::held;
  return writer_gone_;  // read its last data
}

Result<bool> Follower::next(FollowedBatch& batch) {
  batch = {};
  while (state_ == FollowState::growing) {
    if (!reader_) {
      auto started = start();
      if (!started) return started;
    }
    if (reader_) {
      if (auto read = this->read(batch); !read) return read.error();
      if (!batch.empty()) {
        if (part_) writer_gone_ = false;  // it had begun another file
        return true;
      }
    }
    if (!check_writer()) break;
  }
  return false;
}

}  // namespace tidemark
