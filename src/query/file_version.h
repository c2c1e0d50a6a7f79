// Whether a file is still the one that was read.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace tidemark {

struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed_s = 0;
  std::int64_t changed_ns = 0;

  /// All 0 where there is no such file.
  static FileVersion of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  bool operator==(const FileVersion&) const = default;
};

}  // namespace tidemark
