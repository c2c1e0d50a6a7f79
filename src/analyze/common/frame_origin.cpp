#include "analyze/common/frame_origin.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tidemark {
namespace {

// What follows the innermost folder of this name, given with its last slash; empty: there is none.
std::string_view below(std::string_view file, std::string_view folder) {
  for (std::size_t at = file.rfind(folder); at != std::string_view::npos; at = file.rfind(folder, at - 1)) {
    if (at == 0 || file[at - 1] == '/') return file.substr(at + folder.size());
  }
  return {};
}

// The shorter one is in the folder farther inside.
std::string_view in_packages(std::string_view file) {
  const std::string_view site = below(file, "site-packages/");
  const std::string_view dist = below(file, "dist-packages/");
  return site.empty() || (!dist.empty() && dist.size() < site.size()) ? dist : site;
}

// What is below lib/python3.11, lib64/python3.11 or lib/python311.zip; empty: it is in none of them.
std::string_view in_standard_library(std::string_view file) {
  for (const std::string_view parent : {"lib/", "lib64/"}) {
    std::string_view version = below(file, parent);
    for (const std::string_view interpreter : {"python", "pypy"}) {
      if (!version.starts_with(interpreter)) continue;
      version.remove_prefix(interpreter.size());
      const std::size_t slash = version.find('/');
      if (slash != std::string_view::npos && version[0] >= '0' && version[0] <= '9') return version.substr(slash + 1);
    }
  }
  return {};
}

// "/venv/bin/torchrun": pip writes these. A project's own programs have a file name that ends in ".py".
bool is_start_script(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos || file.find('.', slash) != std::string_view::npos) return false;
  return file.substr(0, slash).ends_with("/bin");
}

bool is_generated_by_pytorch(std::string_view file) {
  return file.starts_with("<eval_with_key>") || file.find("/torchinductor_") != std::string_view::npos;
}

}  // namespace

std::string_view installed_path(std::string_view file) {
  const std::string_view package = in_packages(file);
  return package.empty() ? in_standard_library(file) : package;
}

FrameOrigin origin_of(std::string_view file) {
  if (const std::string_view package = in_packages(file); !package.empty()) {
    return package.starts_with("torch/") ? FrameOrigin::pytorch : FrameOrigin::package;
  }
  if (is_generated_by_pytorch(file)) return FrameOrigin::pytorch;
  if (file.starts_with("<frozen ") || !in_standard_library(file).empty()) return FrameOrigin::standard_library;
  // "<__array_function__ internals>", "<decorator-gen-12>", "<attrs generated init model.Config>"
  constexpr std::array<std::string_view, 3> kGenerated = {"<__array_function__", "<decorator-gen-",
                                                          "<attrs generated "};
  const bool generated = std::any_of(kGenerated.begin(), kGenerated.end(),
                                     [&](std::string_view start) { return file.starts_with(start); });
  return generated || is_start_script(file) ? FrameOrigin::package : FrameOrigin::project;
}

FrameOrigin origin_of(const FrameName& frame) {
  return frame.file.empty() ? FrameOrigin::pytorch : origin_of(frame.file);
}

bool is_project_code(const FrameName& frame) {
  return frame.kind == Location::Kind::python && origin_of(frame) == FrameOrigin::project;
}

}  // namespace tidemark
