#include "trace/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"

namespace tidemark {
namespace {

constexpr std::size_t kReadStep = std::size_t{1} << 20;

class FileSource final : public ByteSource {
 public:
  FileSource(ScopedFd fd, std::uint64_t size, std::string path)
      : fd_(std::move(fd)), size_(size), path_(std::move(path)) {}

  Result<std::span<const std::byte>> take(std::size_t size) override {
    std::size_t have = 0;
    while (have < size) {
      const std::size_t step = std::min(size - have, kReadStep);
      if (buffer_.size() < have + step) buffer_.resize(have + step);
      const ::ssize_t got = ::read(fd_.get(), buffer_.data() + have, step);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Error{fmt::format("{}: reading failed at offset {}: {}", path_, offset_ + have, std::strerror(errno))};
      }
      if (got == 0) break;
      have += static_cast<std::size_t>(got);
    }
    offset_ += have;
    return std::span<const std::byte>(buffer_.data(), have);
  }

  [[nodiscard]] std::uint64_t offset() const override { return offset_; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& name() const override { return path_; }

 private:
  ScopedFd fd_;
  std::uint64_t size_;
  std::uint64_t offset_ = 0;
  std::string path_;
  std::vector<std::byte> buffer_;  // only grows
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  Result<std::span<const std::byte>> take(std::size_t size) override {
    const auto taken = bytes_.subspan(offset_, std::min(size, bytes_.size() - offset_));
    offset_ += taken.size();
    return taken;
  }

  [[nodiscard]] std::uint64_t offset() const override { return offset_; }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path) {
  ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Error{fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  struct ::stat facts {};
  if (::fstat(fd.get(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return Error{fmt::format("{} is a directory: name the recording in it", path)};
  }
  const std::uint64_t size = S_ISREG(facts.st_mode) ? static_cast<std::uint64_t>(facts.st_size) : 0;
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(std::move(fd), size, path));
}

std::unique_ptr<ByteSource> make_memory_source(std::span<const std::byte> bytes, std::string name) {
  return std::make_unique<MemorySource>(bytes, std::move(name));
}

}  // namespace tidemark
