#include "base/byte_stream.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/regular_file.h"

namespace tidemark {
namespace {

class FileStream final : public ByteStream {
 public:
  FileStream(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    while (true) {
      const ::ssize_t got = ::read(fd_.get(), out.data(), out.size());
      if (got >= 0) {
        offset_ += static_cast<std::size_t>(got);
        return static_cast<std::size_t>(got);
      }
      if (errno != EINTR) {
        return Error{fmt::format("{}: reading failed at offset {}: {}", path_, offset_, std::strerror(errno))};
      }
    }
  }

  bool skip(std::size_t size) override {
    if (offset_ + size > stored_size()) return false;
    if (::lseek(fd_.get(), static_cast<::off_t>(size), SEEK_CUR) < 0) return false;
    offset_ += size;
    return true;
  }

  [[nodiscard]] std::uint64_t stored_offset() const override { return offset_; }
  // Read on each call: the file may be growing.
  [[nodiscard]] std::uint64_t stored_size() const override {
    struct ::stat facts {};
    const bool has_size = ::fstat(fd_.get(), &facts) == 0 && S_ISREG(facts.st_mode);
    return has_size ? static_cast<std::uint64_t>(facts.st_size) : 0;
  }
  [[nodiscard]] std::string_view packing() const override { return {}; }
  [[nodiscard]] const std::string& name() const override { return path_; }

 private:
  ScopedFd fd_;
  std::uint64_t offset_ = 0;
  std::string path_;
};

class MemoryStream final : public ByteStream {
 public:
  MemoryStream(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const auto piece = bytes_.subspan(offset_, std::min(out.size(), bytes_.size() - offset_));
    std::copy(piece.begin(), piece.end(), out.begin());
    offset_ += piece.size();
    return piece.size();
  }

  [[nodiscard]] std::uint64_t stored_offset() const override { return offset_; }
  [[nodiscard]] std::uint64_t stored_size() const override { return bytes_.size(); }
  [[nodiscard]] std::string_view packing() const override { return {}; }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> open_byte_stream(const std::string& path) {
  struct ::stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return Error{fmt::format("{} is a directory: name a file in it", path)};
  }
  auto fd = open_regular_file(path);
  if (!fd) return Error{fmt::format("{}: {}", path, fd.error().message)};
  return make_file_stream(std::move(*fd), path);
}

std::unique_ptr<ByteStream> make_file_stream(ScopedFd fd, const std::string& path) {
  return std::make_unique<FileStream>(std::move(fd), path);
}

std::unique_ptr<ByteStream> make_memory_stream(std::span<const std::byte> bytes, std::string name) {
  return std::make_unique<MemoryStream>(bytes, std::move(name));
}

}  // namespace tidemark
