// Output files, which appear complete or not at all, and temporary folders.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tidemark {

/// Writes to a temporary file that replaces the destination in commit(); without commit() it is removed. Devices and
/// pipes are written to directly. Errors name the destination. Not thread-safe.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  Result<void> write(std::string_view bytes);
  Result<void> commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };

  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Error failed() const;

  std::string path_;       // as the user named it
  std::string target_;     // target of a symbolic link
  std::string temporary_;  // empty: written directly, or committed
  std::unique_ptr<std::FILE, Close> file_;
};

/// Creates, writes and commits an OutputFile.
Result<void> write_file(const std::string& path, std::string_view bytes);

/// A new folder for its owner only, in the folder for temporary files ($TMPDIR); removed, including its content, with
/// this object. Move-only.
class ScratchFolder {
 public:
  /// `name`: prefix of its name. The error names the folder that could not be created.
  static Result<ScratchFolder> create(const std::string& name);

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty once it was moved from
};

}  // namespace tidemark
