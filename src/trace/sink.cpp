#include "trace/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "base/locked_file.h"
#include "base/scoped_fd.h"

namespace tidemark {
namespace {

// Number of last frames that may be dropped to make room for the end of a file.
constexpr std::size_t kMaxDropped = 8;

class FileSink final : public Sink {
 public:
  FileSink(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)), has_name_(!lost_name()) {}
  ~FileSink() override {
    struct ::stat facts {};
    const bool empty = ::fstat(fd_.get(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0;
    if (empty && has_name(fd_, path_)) ::unlink(path_.c_str());
  }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  Result<void> append(std::span<const std::byte> bytes) override {
    if (has_name_ && lost_name()) return Error{fmt::format("{}: was deleted while it was being written", path_)};
    if (const int error = write_all(bytes); error != 0) return undo(error);
    if (size_ > 0) ends_.push_back(size_);
    if (ends_.size() > kMaxDropped) ends_.pop_front();
    size_ += static_cast<::off_t>(bytes.size());
    return {};
  }

  Result<std::uint64_t> append_last(std::span<const std::byte> bytes) override {
    if (has_name_ && lost_name()) return Error{fmt::format("{}: was deleted", path_)};
    int error = write_all(bytes);
    while ((error == ENOSPC || error == EDQUOT || error == EFBIG) && !ends_.empty()) {
      size_ = ends_.back();
      ends_.pop_back();
      error = cut_back() ? write_all(bytes) : EIO;
    }
    if (error == 0) return static_cast<std::uint64_t>(size_) + bytes.size();
    static_cast<void>(cut_back());
    return Error{fmt::format("{}: {}", path_, std::strerror(error))};
  }

  [[nodiscard]] std::string failure_reason() const override { return failure_reason_; }

 private:
  /// Whether the file has no name any more: nobody would ever read it.
  [[nodiscard]] bool lost_name() const {
    struct ::stat facts {};
    return ::fstat(fd_.get(), &facts) == 0 && facts.st_nlink == 0;
  }

  /// 0 or the error; then part of the bytes may have been written.
  int write_all(std::span<const std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ::ssize_t wrote = ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
      if (wrote == 0) return ENOSPC;
      if (wrote < 0 && errno != EINTR) return errno;
      if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
    return 0;
  }

  bool cut_back() { return ::ftruncate(fd_.get(), size_) == 0 && ::lseek(fd_.get(), size_, SEEK_SET) == size_; }

  /// Truncates a partly written frame. If that fails (a pipe, a dead disk), the reader drops the torn tail.
  Error undo(int error) {
    failure_reason_ = std::strerror(error);
    return {
        fmt::format("{}: writing failed after {} bytes: {}; {} Free some space or choose another place with -o.", path_,
                    size_, failure_reason_,
                    cut_back() ? "what was written before is kept." : "the end may be torn, which readers ignore.")};
  }

  ScopedFd fd_;
  std::string path_;
  bool has_name_;             // unnamed pipes, and the files of some file systems, never have
  ::off_t size_ = 0;          // whole appends
  std::deque<::off_t> ends_;  // starts of the last of them, without the first
  std::string failure_reason_;
};

class MemorySink final : public Sink {
 public:
  explicit MemorySink(std::vector<std::byte>* out) : out_(out) {}
  Result<void> append(std::span<const std::byte> bytes) override {
    out_->insert(out_->end(), bytes.begin(), bytes.end());
    return {};
  }

 private:
  std::vector<std::byte>* out_;
};

class NullSink final : public Sink {
 public:
  Result<void> append(std::span<const std::byte>) override { return {}; }
};

}  // namespace

std::unique_ptr<Sink> make_file_sink(ScopedFd fd, const std::string& path) {
  return std::make_unique<FileSink>(std::move(fd), path);
}

Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, bool overwrite) {
  auto fd = create_locked_file(path, overwrite);
  if (!fd) return fd.error();
  if (*fd) return make_file_sink(std::move(*fd), path);
  return Error{fmt::format("{}: cannot be created: {}. Choose another name with -o.", path,
                           overwrite ? "it is a symbolic link, or is being written" : std::strerror(EEXIST))};
}

Result<std::uint64_t> Sink::append_last(std::span<const std::byte> /*bytes*/) {
  return Error{"nothing can be written any more"};
}

std::unique_ptr<Sink> make_memory_sink(std::vector<std::byte>* out) {
  return std::make_unique<MemorySink>(out);
}

std::unique_ptr<Sink> make_null_sink() {
  return std::make_unique<NullSink>();
}

}  // namespace tidemark
