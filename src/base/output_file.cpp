#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/scoped_fd.h"

namespace tidemark {

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile output(path);
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  output.target_ =
      type == std::filesystem::file_type::not_found ? path : std::filesystem::canonical(path, error).string();
  const bool replace = type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::regular;
  const std::string name = replace ? fmt::format("{}.{}.part", output.target_, ::getpid()) : path;
  ScopedFd fd(::open(name.c_str(), O_WRONLY | O_CLOEXEC | (replace ? O_CREAT | O_EXCL : 0), 0666));
  if (!fd) return Error{fmt::format("{}: cannot be created: {}", path, std::strerror(errno))};
  if (replace) output.temporary_ = name;
  output.file_.reset(::fdopen(fd.get(), "wb"));
  if (!output.file_) return output.failed();
  static_cast<void>(fd.release());  // the stream closes it
  return output;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> OutputFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) return {};
  return failed();
}

Result<void> OutputFile::commit() {
  if (std::fclose(file_.release()) != 0) return failed();
  if (temporary_.empty()) return {};
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return failed();
  temporary_.clear();
  return {};
}

Error OutputFile::failed() const {
  return {fmt::format("{}: cannot be written: {}", path_, std::strerror(errno))};
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

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
