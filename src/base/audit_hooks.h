// Whether a Python program has audit hooks (sys.addaudithook, PySys_AddAuditHook): they would see Tidemark's Python
// code, and may end the program because of it. Needs no runtime: the preloaded library includes it too.
#pragma once

namespace tidemark {

/// `audit`, `set_error` and `clear_error` are CPython's PySys_Audit, PyErr_NoMemory and PyErr_Clear. Requires the GIL.
/// No hook sees the check: CPython creates an event's arguments only if there is a hook for it, and calls no hook if
/// that fails.
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

/// Whether the hook is filelock's, which Hugging Face's libraries import: from CPython 3.12 on it adds one to detect
/// forks, and ignores all other events. `version` is Py_GetVersion()'s; `get_object` and `get_item` are PySys_GetObject
/// and PyDict_GetItemString. Requires the GIL.
inline bool is_hook_of_filelock(const char* version, void* (*get_object)(const char* name),
                                void* (*get_item)(void* dict, const char* key)) noexcept {
  int minor = 0;
  if (version == nullptr || version[0] != '3' || version[1] != '.') return false;
  for (const char* digit = version + 2; *digit >= '0' && *digit <= '9' && minor < 100; ++digit)
    minor = minor * 10 + (*digit - '0');
  void* modules = minor >= 12 ? get_object("modules") : nullptr;
  return modules != nullptr && get_item(modules, "filelock") != nullptr;
}

/// CPython's functions that the question below takes.
struct AuditApi {
  int (*audit)(const char* event, const char* format, ...);  ///< PySys_Audit
  void* (*set_error)();                                      ///< PyErr_NoMemory
  void (*clear_error)();                                     ///< PyErr_Clear
  const char* (*version)();                                  ///< Py_GetVersion
  void* (*get_object)(const char* name);                     ///< PySys_GetObject
  void* (*get_item)(void* dict, const char* key);            ///< PyDict_GetItemString
};

/// Whether Tidemark's Python code has to stay out of the program because it has audit hooks, other than filelock's.
/// False if a function is missing, as there are no hooks before CPython 3.8. Requires the GIL.
inline bool is_audited(const AuditApi& api) noexcept {
  return api.audit != nullptr && api.set_error != nullptr && api.clear_error != nullptr && api.version != nullptr &&
         api.get_object != nullptr && api.get_item != nullptr &&
         has_audit_hooks(api.audit, api.set_error, api.clear_error) &&
         !is_hook_of_filelock(api.version(), api.get_object, api.get_item);
}

}  // namespace tidemark
