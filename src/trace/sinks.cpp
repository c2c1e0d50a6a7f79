#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/scoped_fd.h"
#include "trace/sink.h"

namespace tidemark {
namespace {

class FileSink final : public Sink {
 public:
  FileSink(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<void> append(std::span<const std::byte> bytes) override {
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
  /// Cuts a partly written frame off. Where that fails (a pipe, a dead disk) the reader drops the torn tail.
  Error undo(int error) {
    const bool cut = ::ftruncate(fd_.get(), size_) == 0 && ::lseek(fd_.get(), size_, SEEK_SET) == size_;
    return {fmt::format("{}: writing failed after {} bytes: {}; {} Free some space or choose another place with -o.",
                        path_, size_, std::strerror(error),
                        cut ? "what was written before is kept." : "the end may be torn, which readers ignore.")};
  }

  ScopedFd fd_;
  std::string path_;
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

Result<std::unique_ptr<Sink>> open_file_sink(const std::string& path, bool overwrite) {
  // The memory layout of somebody's training is nobody else's business: owner only, whatever the umask.
  ScopedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL), S_IRUSR | S_IWUSR));
  if (!fd) {
    const int error = errno;
    return Error{
        fmt::format("{}: cannot create the recording: {}. {}", path, std::strerror(error),
                    error == EEXIST ? "Remove it, or choose another name with -o." : "Choose another place with -o.")};
  }
  return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(fd), path));
}

std::unique_ptr<Sink> make_memory_sink(std::vector<std::byte>* out) {
  return std::make_unique<MemorySink>(out);
}

std::unique_ptr<Sink> make_null_sink() {
  return std::make_unique<NullSink>();
}

}  // namespace tidemark
