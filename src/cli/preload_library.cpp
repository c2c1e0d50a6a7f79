#include "cli/preload_library.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace tidemark::cli {

Result<std::string> preload_library() {
  std::error_code error;
  const auto program = std::filesystem::canonical("/proc/self/exe", error);
  for (const char* folder : {"../" TIDEMARK_LIBDIR, "../lib", "."}) {
    const auto path = (program.parent_path() / folder / "libtidemark_preload.so").lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return Error{
      fmt::format("libtidemark_preload.so was not found beside {}: is the installation complete?", program.string())};
}

}  // namespace tidemark::cli
