#include "follow/kept_part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/locked_file.h"
#include "base/regular_file.h"
#include "trace/format.h"
#include "trace/sink.h"
#include "trace/writer.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

// A recorder begins the next segment at the moment it ends one: a segment without a next one after this time is the
// last, even if the file does not record an end.
constexpr std::chrono::seconds kPatienceForNext{2};
// A reader with much to read sees new segments as soon as one with little.
constexpr std::chrono::milliseconds kLookAgain{50};
// More than a window usually has: open files use disk space even though they are deleted.
constexpr std::size_t kMaxWaiting = 16;

struct ::stat facts_of(const ScopedFd& fd) {
  struct ::stat facts {};
  if (::fstat(fd.get(), &facts) != 0) facts = {};
  return facts;
}

// Its header is complete.
bool has_begun(int fd) {
  struct ::stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_size >= static_cast<::off_t>(format::kFileHeaderBytes);
}
bool has_begun(const ScopedFd& fd) {
  return has_begun(fd.get());
}

ScopedFd open_segment(const KeptSegment& segment) {
  // In this order, in which the file is renamed.
  for (const std::string& path : {segment.path_before(), segment.path()}) {
    if (auto fd = open_regular_file(path, Symlinks::refused)) return std::move(*fd);
  }
  return {};
}

class KeptPartStream final : public ByteStream {
 public:
  explicit KeptPartStream(std::shared_ptr<KeptPart> part) : part_(std::move(part)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    auto got = part_->read(out);
    if (got) offset_ += *got;
    return got;
  }
  [[nodiscard]] std::uint64_t stored_offset() const override { return offset_; }
  [[nodiscard]] std::uint64_t stored_size() const override { return 0; }
  [[nodiscard]] std::string_view packing() const override { return {}; }
  [[nodiscard]] const std::string& name() const override { return part_->folder(); }

 private:
  std::shared_ptr<KeptPart> part_;
  std::uint64_t offset_ = 0;
};

}  // namespace

Result<std::shared_ptr<KeptPart>> KeptPart::open(const KeptSegment& segment) {
  std::shared_ptr<KeptPart> part(new KeptPart({segment.folder, 0, segment.window}));
  auto writer = TraceWriter::create(make_memory_sink(&part->bytes_), {});
  if (!writer) return writer.error();
  (*writer)->leave_out_checkpoints();
  part->joiner_ = std::make_unique<SegmentJoiner>(std::move(*writer));
  part->find_segments();
  if (part->waiting_.empty()) return Error{fmt::format("{}: is no longer there", segment.path())};
  const auto newest =
      std::find_if(part->waiting_.rbegin(), part->waiting_.rend(), [](const Open& open) { return has_begun(open.fd); });
  part->newest_at_first_ = newest != part->waiting_.rend() ? newest->segment.path() : segment.path();
  return part;
}

Result<std::shared_ptr<KeptPart>> KeptPart::open_latest(const KeptSegment& segment) {
  auto part = open(segment);
  if (part) (*part)->begin_with_newest();
  return part;
}

void KeptPart::begin_with_newest() {
  while (waiting_.size() > 1 && has_begun(waiting_[1].fd)) waiting_.pop_front();
  if (!has_begun(waiting_.front().fd)) return;
  ScannedPart part;
  FrameScan scan(format::kFileHeaderBytes);
  while (!scan.advance(waiting_.front().fd.get(), part)) {
  }
  begin_at_state_ = part.state_offset;
}

// Scans segment after segment, as far as they are open; segments before the one being read are finished.
bool KeptPart::scan_ahead(ScannedPart& part) {
  std::vector<std::pair<const KeptSegment*, int>> segments;
  if (reader_) segments.emplace_back(&here_, fd_.get());
  for (const Open& open : waiting_) segments.emplace_back(&open.segment, open.fd.get());
  auto at = std::ranges::find_if(segments, [this](const auto& of) { return *of.first == scanned_; });
  if (at == segments.end()) {
    at = segments.begin();
    scan_ = FrameScan(format::kFileHeaderBytes);
  }
  for (; at != segments.end() && has_begun(at->second); ++at) {
    if (*at->first != scanned_) {
      scan_ = FrameScan(format::kFileHeaderBytes);
      state_ahead_.reset();
    }
    scanned_ = *at->first;
    part.state_offset.reset();
    const bool all = scan_.advance(at->second, part);
    if (part.state_offset) state_ahead_ = part.state_offset;
    if (!all) return false;
  }
  return true;
}

bool KeptPart::can_begin_later() const {
  if (!waiting_.empty() && has_begun(waiting_.front().fd)) return true;
  return reader_ && scanned_ == here_ && state_ahead_ && *state_ahead_ >= reader_->offset();
}

void KeptPart::find_segments() {
  looked_at_ = Clock::now();
  for (KeptSegment& segment : later_segments(latest_)) {
    if (waiting_.size() == kMaxWaiting) return;
    ScopedFd fd = open_segment(segment);
    if (!fd) continue;  // the oldest may have been deleted meanwhile
    latest_ = segment;
    waiting_.push_back({std::move(segment), std::move(fd)});
  }
}

Result<bool> KeptPart::begin_next() {
  if (waiting_.empty()) return false;
  Open& next = waiting_.front();
  if (!has_begun(next.fd)) return false;
  ScopedFd fd(::fcntl(next.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return Error{fmt::format("{}: cannot be read: {}", next.segment.path(), std::strerror(errno))};
  auto reader = TraceReader::follow(make_file_stream(std::move(fd), next.segment.path()));
  if (!reader) return reader.error();
  reader_ = std::move(*reader);
  if (begin_at_state_) reader_->pass_over_until(*std::exchange(begin_at_state_, std::nullopt));
  fd_ = std::move(next.fd);
  here_ = std::move(next.segment);
  waiting_.pop_front();
  ended_at_.reset();
  joiner_->begin(*reader_, nullptr);
  return true;
}

Result<bool> KeptPart::advance() {
  if (over_ || gap_) return false;
  if (!reader_) return begin_next();
  auto taken = joiner_->take_frame();
  if (!taken) return taken;
  gap_ = earlier_end_ns_ && joiner_->begin_ns() && *joiner_->begin_ns() != *earlier_end_ns_;
  if (*taken) return true;
  return at_end_of_segment();
}

// The next segment exists before it begins, and is deleted if there will be no more.
bool KeptPart::next_may_come() const {
  const ScopedFd& last = waiting_.empty() ? fd_ : waiting_.front().fd;
  if (facts_of(last).st_nlink == 0) return false;
  const LockState lock = waiting_.empty() ? LockState::unknown : probe_lock(last);
  return lock == LockState::unknown ? Clock::now() - *ended_at_ < kPatienceForNext : lock == LockState::taken;
}

Result<bool> KeptPart::at_end_of_segment() {
  find_segments();
  bool next_begun = !waiting_.empty() && has_begun(waiting_.front().fd);
  if (!joiner_->end() && next_begun) {
    // Data that the recorder wrote before it began the next one.
    auto taken = joiner_->take_frame();
    if (!taken || *taken) return taken;
    gap_ = !joiner_->end();
  }
  const std::optional<EndInfo> end = joiner_->end();
  if (!end) return false;
  if (!ended_at_) ended_at_ = Clock::now();
  if (!next_begun && !end->process_exited) {
    if (next_may_come()) return false;
    next_begun = !waiting_.empty() && has_begun(waiting_.front().fd);  // it may have begun meanwhile
    gap_ = waiting_.empty();                                           // it existed only between two checks
    if (gap_) return false;
  }
  joiner_->end_segment();
  if (!next_begun) {
    over_ = true;
    const auto finished = joiner_->finish();
    if (!finished) return finished.error();
    return false;
  }
  earlier_end_ns_ = end->time_ns;
  reader_.reset();
  return begin_next();
}

Result<std::size_t> KeptPart::read(std::span<std::byte> out) {
  if (Clock::now() - looked_at_ >= kLookAgain) find_segments();
  while (bytes_.size() < out.size()) {
    const auto advanced = advance();
    if (!advanced) return advanced.error();
    if (*advanced) continue;
    if (!over_) {
      if (Result<void> flushed = joiner_->writer().flush(); !flushed) return flushed.error();
    }
    break;
  }
  const std::size_t size = std::min(out.size(), bytes_.size());
  std::copy_n(bytes_.begin(), size, out.begin());
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
  return size;
}

std::uint64_t KeptPart::behind() const {
  std::uint64_t bytes = bytes_.size();
  const auto add = [&](const ScopedFd& fd, std::uint64_t read) {
    const auto size = static_cast<std::uint64_t>(facts_of(fd).st_size);
    bytes += size - std::min(size, read);
  };
  if (reader_) add(fd_, reader_->offset());
  for (const Open& open : waiting_) add(open.fd, 0);
  return bytes;
}

bool KeptPart::recorder_gone() const {
  const ScopedFd& last = waiting_.empty() ? fd_ : waiting_.front().fd;
  return !over_ && !ended_at_ && last && probe_lock(last) == LockState::held;
}

void KeptPart::stop_waiting() {
  if (over_ || !reader_) return;
  over_ = true;
  reader_->stop_waiting();
  for (auto taken = joiner_->take_frame(); taken && *taken;) taken = joiner_->take_frame();
  joiner_->end_segment();
  static_cast<void>(joiner_->writer().flush());
}

bool KeptPart::moved_on() const {
  return ::access(newest_at_first_.c_str(), F_OK) != 0;
}

std::unique_ptr<ByteStream> make_kept_part_stream(std::shared_ptr<KeptPart> part) {
  return std::make_unique<KeptPartStream>(std::move(part));
}

}  // namespace tidemark
