// CPython's functions in the planned program, which this library is not linked with.
#pragma once

#include <dlfcn.h>

namespace tidemark::phantom {

/// Null if the program has no such function, as one without Python.
template <typename Function>
[[nodiscard]] Function program_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace tidemark::phantom
