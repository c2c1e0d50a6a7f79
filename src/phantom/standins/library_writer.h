// Writes a shared library under another library's name, without a compiler: the data needed by the dynamic loader and
// the linker, and a few bytes of code for each function.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// The implementation of a function of a stand-in.
enum class StandinFunction {
  succeed,        ///< returns 0: asynchronous work, settings
  create_handle,  ///< writes a new handle to its first argument, returns 0
  fail,           ///< prints its name once, returns its library's status for failure
};

struct StandinLibrary {
  std::string soname;   ///< "libcudart.so.13"
  std::string version;  ///< the version node that callers require; empty for libraries without versions
  struct Function {
    std::string name;
    StandinFunction what;
  };
  std::vector<Function> functions;
};

/// The bytes of an ELF shared library for x86-64. It needs libtidemark_phantom.so, which implements functions that are
/// not in the list.
[[nodiscard]] std::string write_standin_library(const StandinLibrary& library);

}  // namespace tidemark
