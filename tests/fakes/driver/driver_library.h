// libcuda.so.1 for libraries that also run without a GPU: looked up at run time.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

#include "driver_api.h"

namespace fakes {

inline void* driver_function(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY);
  void* function = library == nullptr ? nullptr : ::dlsym(library, name);
  if (function != nullptr) return function;
  std::fprintf(stderr, "%s is not there: %s\n", name, ::dlerror());
  ::_exit(96);
}

}  // namespace fakes

/// A function of the driver: DRIVER(cuMemAlloc_v2)(&address, bytes).
#define DRIVER(name) (reinterpret_cast<decltype(&::name)>(::fakes::driver_function(#name)))
