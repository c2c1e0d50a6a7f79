// The functions of tidemark/control.h, wherever the library is that has them: preloaded, or loaded while the program
// runs. Nothing links it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace tidemark {

/// As in tidemark/control.h.
struct ControlLibrary {
  void (*pause)();
  void (*resume)();
  void (*mark)(const char*);
  void (*range_begin)(const char*);
  void (*range_end)(const char*);
  std::size_t (*attach)();
  int (*connect)(const char* const*);
  int (*disconnect)();
  int (*is_recording)();
  void (*name_file)(const char*, const char*);
};

namespace control_detail {
inline std::atomic<const ControlLibrary*> found = nullptr;

template <typename Function>
bool find(void* handle, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(::dlsym(handle, name));
  return *function != nullptr;
}
}  // namespace control_detail

/// The process's; null where it is not loaded, or was not looked for. Costs a load.
inline const ControlLibrary* control_library() {
  return control_detail::found.load(std::memory_order_acquire);
}

/// Looks for it among what `handle`, as of dlopen(), has. True where it is known then. Any thread.
inline bool find_control_library(void* handle) {
  static std::mutex mutex;
  static ControlLibrary library;
  using control_detail::find;
  const std::lock_guard lock(mutex);
  if (control_library() != nullptr) return true;
  const bool all =
      find(handle, "tidemark_pause", &library.pause) && find(handle, "tidemark_resume", &library.resume) &&
      find(handle, "tidemark_mark", &library.mark) && find(handle, "tidemark_range_begin", &library.range_begin) &&
      find(handle, "tidemark_range_end", &library.range_end) && find(handle, "tidemark_attach", &library.attach) &&
      find(handle, "tidemark_connect", &library.connect) && find(handle, "tidemark_disconnect", &library.disconnect) &&
      find(handle, "tidemark_is_recording", &library.is_recording) &&
      find(handle, "tidemark_name_file", &library.name_file);
  if (all) control_detail::found.store(&library, std::memory_order_release);
  return all;
}

}  // namespace tidemark
