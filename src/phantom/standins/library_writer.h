// Writes a shared library under another library's name, without a compiler: what the dynamic loader and the linker
// need, and a few bytes of code for each function.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// What a function of a stand-in does.
enum class StandinFunction {
  succeed,        ///< returns 0: work that is only put into a stream, settings
  create_handle,  ///< writes a new handle to where its first argument points, returns 0
  fail,           ///< says its name once, returns its library's status for failure
};

struct StandinLibrary {
  std::string soname;   ///< "libcudart.so.13"
  std::string version;  ///< the version node that callers ask for; empty for libraries without
  struct Function {
    std::string name;
    StandinFunction what;
  };
  std::vector<Function> functions;
};

/// The bytes of an ELF shared library for x86-64. It needs libtidemark_phantom.so, which answers what is not in the
/// list.
[[nodiscard]] std::string write_standin_library(const StandinLibrary& library);

}  // namespace tidemark
