#include "base/scratch_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tidemark {

Result<ScratchFolder> ScratchFolder::create(const std::string& name) {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / (name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) != nullptr) return ScratchFolder(std::move(path));
  return Error{fmt::format("{}: no folder could be created: {}", path, std::strerror(errno))};
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tidemark
