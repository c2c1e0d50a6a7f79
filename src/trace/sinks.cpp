#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/locked_file.h"
#include "base/scoped_fd.h"
#include "trace/sink.h"

namespace tidemark {
namespace {

class FileSink final : public Sink {
 public:
  FileSink(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)), has_name_(!lost_name()) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    if (has_name_ && lost_name()) return Error{fmt::format("{}: was deleted while it was being written", path_)};
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ::ssize_t wrote = ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
      if (wrote > 0) {
        done += static_cast<std::size_t>(wrote);
      } else if (wrote == 0 || errno != EINTR) {
        return undo(wrote == 0 ? ENOSPC : errno);
      }
    }
    size_ += static_cast<::off_t>(bytes.size());
    return {};
  }

 private:
  /// Whether no name leads to the file any more: nobody would ever read what is written.
  [[nodiscard]] bool lost_name() const {
    struct ::stat facts {};
    return ::fstat(fd_.get(), &facts) == 0 && facts.st_nlink == 0;
  }

  /// Cuts a partly written frame off. Where that fails (a pipe, a dead disk) the reader drops the torn tail.
  Error undo(int error) {
    const bool cut = ::ftruncate(fd_.get(), size_) == 0 && ::lseek(fd_.get(), size_, SEEK_SET) == size_;
    return {fmt::format("{}: writing failed after {} bytes: {}; {} Free some space or choose another place with -o.",
                        path_, size_, std::strerror(error),
                        cut ? "what was written before is kept." : "the end may be torn, which readers ignore.")};
  }

  ScopedFd fd_;
  std::string path_;
  bool has_name_;     // unnamed pipes, and the files of some file systems, never have
  ::off_t size_ = 0;  // whole appends
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

Result<std::unique_ptr<Sink>> open_file_sink_unless_taken(const std::string& path, bool overwrite) {
  // The memory layout of somebody's training is nobody else's business: owner only.
  auto fd = create_locked_file(path, overwrite);
  if (!fd) return Error{fd.error().message + ". Choose another place with -o."};
  if (!*fd) return std::unique_ptr<Sink>();
  return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(*fd), path));
}

Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, bool overwrite) {
  auto sink = open_file_sink_unless_taken(path, overwrite);
  if (!sink || *sink != nullptr) return sink;
  return Error{fmt::format("{}: cannot be created: {}. Choose another name with -o.", path,
                           overwrite ? "it is a symbolic link, or is being written" : std::strerror(EEXIST))};
}

std::unique_ptr<Sink> make_memory_sink(std::vector<std::byte>* out) {
  return std::make_unique<MemorySink>(out);
}

std::unique_ptr<Sink> make_null_sink() {
  return std::make_unique<NullSink>();
}

}  // namespace tidemark
