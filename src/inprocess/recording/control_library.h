// The functions of tidemark/control.h, wherever the library is that has them: preloaded, or loaded while the program
// runs. Nothing links it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <mutex>

#include "base/control_functions.h"

namespace tidemark {

namespace control_detail {
inline std::atomic<const ControlFunctions*> found = nullptr;
}  // namespace control_detail

/// The process's; null where it is not loaded, or was not looked for. Costs a load.
inline const ControlFunctions* control_library() {
  return control_detail::found.load(std::memory_order_acquire);
}

/// Looks for it among what `handle`, as of dlopen(), has. True where it is known then. Any thread.
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
