// Whether a Python program has audit hooks (sys.addaudithook, PySys_AddAuditHook): they would see what Python code of
// ours does, and may end the program for it. Needs no runtime: the preloaded library includes it too.
#pragma once

namespace tidemark {

/// `audit`, `set_error` and `clear_error` are CPython's PySys_Audit, PyErr_NoMemory and PyErr_Clear. With the GIL. No
/// hook sees the question: CPython makes an event's arguments only where there is a hook for it, and tells the hooks
/// nothing where that fails.
inline bool has_audit_hooks(int (*audit)(const char* event, const char* format, ...), void* (*set_error)(),
                            void (*clear_error)()) noexcept {
  struct Question {
    void* (*set_error)();
    bool was_asked;
  } question{set_error, false};
  void* (*fail)(void*) = [](void* argument) -> void* {
    auto& asked = *static_cast<Question*>(argument);
    asked.was_asked = true;
    return asked.set_error();
  };
  if (audit("tidemark", "O&", fail, &question) != 0) clear_error();
  return question.was_asked;
}

}  // namespace tidemark
