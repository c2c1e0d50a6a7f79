// A folder for files that nobody keeps.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tidemark {

/// A new folder for its owner only, where temporary files are ($TMPDIR); removed, with all that is in it, with this
/// object. Move-only.
class ScratchFolder {
 public:
  /// `name`: what its name begins with. The error names the folder that could not be created.
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
