// Python scripts of ours that run inside the program: on its main thread, between two bytecodes.
#pragma once

#include <cstddef>

#include "collect/process/script/python_api.h"

namespace tidemark::process {

/// A script in a namespace of its own, which lives as long as the interpreter. It defines ask(), which returns whether
/// it is to be asked again, and has quietly() of quiet.inc. All of it with the GIL.
class Script {
 public:
  /// Both outlive it. `methods`: what the script can call.
  template <std::size_t kCount>
  constexpr Script(const char* text, PythonMethod (&methods)[kCount]) noexcept
      : text_(text), methods_(methods), method_count_(kCount) {}

  enum class Outcome {
    done,
    again,
    failed,  ///< quietly
    raised   ///< with an exception of the program's own, such as KeyboardInterrupt from a signal handler of its
  };

  /// Calls its ask(), which neither a debugger nor a profiler of the program sees. Loads it at the first call. Nothing
  /// is done while the interpreter ends, and in other interpreters than the first call's.
  Outcome run() noexcept;

 private:
  void load() noexcept;

  const char* text_;
  PythonMethod* methods_;
  std::size_t method_count_;
  void* interpreter_ = nullptr;  // that has loaded it
  void* ask_ = nullptr;          // null: it could not be loaded
};

/// Has the main thread call the function soon, as Py_AddPendingCall does: it returns 0, or -1 with an exception for the
/// program. Any thread, without the GIL. False where it cannot.
bool schedule_script(int (*function)(void*)) noexcept;

}  // namespace tidemark::process
