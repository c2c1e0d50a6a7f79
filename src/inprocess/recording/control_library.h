// The functions of tidemark/control.h, found in the library that defines them: preloaded, or loaded at run time.
// Nothing links it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <mutex>

#include "base/control_functions.h"

namespace tidemark {

namespace control_detail {
inline std::atomic<const ControlFunctions*> found = nullptr;
}  // namespace control_detail

/// The functions in this process; null if the library is not loaded, or was not looked for. Costs a load.
inline const ControlFunctions* control_library() {
  return control_detail::found.load(std::memory_order_acquire);
}

/// Looks for the functions in `handle`, as of dlopen(). True if they are known now. Any thread.
inline bool find_control_library(void* handle) {
  static std::mutex mutex;
  static ControlFunctions functions;
  const std::lock_guard lock(mutex);
  if (control_library() != nullptr) return true;
  const bool all = find_control_functions([&](const char* name) { return ::dlsym(handle, name); }, &functions);
  if (all) control_detail::found.store(&functions, std::memory_order_release);
  return all;
}

}  // namespace tidemark
