#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "cpp_api/results.h"
#include "launch/environment.h"

namespace tidemark::v1 {
namespace {

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Installed and in the build folder: lib/libtidemark.so, bin/tidemark; also lib/x86_64-linux-gnu.
std::string beside_library() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&own_program), &own) == 0 || own.dli_fname == nullptr) return "";
  std::error_code error;
  std::filesystem::path folder = std::filesystem::canonical(own.dli_fname, error).parent_path();
  for (int up = 0; up < 2 && !folder.empty(); ++up) {
    folder = folder.parent_path();
    if (is_program(folder / "bin" / "tidemark")) return (folder / "bin" / "tidemark").string();
  }
  return "";
}

std::string on_path() {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const std::size_t end = folders.find(':');
    const std::filesystem::path program = std::filesystem::path(folders.substr(0, end)) / "tidemark";
    if (program.is_absolute() && is_program(program)) return program.string();
    folders = end == std::string_view::npos ? "" : folders.substr(end + 1);
  }
  return "";
}

std::string find_program() {
  std::string program = beside_library();
  return program.empty() ? on_path() : program;
}

}  // namespace

void use_own_program() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const std::string program = find_program(); !program.empty()) set_own_program(program);
  });
}

std::string own_program() {
  std::string program = find_program();
  if (!program.empty()) return program;
  throw v1::Error("there is no tidemark program: it belongs beside libtidemark.so, in ../bin, or on PATH");
}

}  // namespace tidemark::v1
