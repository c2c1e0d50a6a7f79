// Runs Python scripts inside the program, on a thread of this library, while the calling thread waits.
//
// CPython calls the program's signal handlers only on its main thread, between two bytecodes. Scripts never run there:
// an exception that a handler raises cannot reach them, and the handler is called when the script is done. The
// program's tracers, profilers and PyTorch modes are per thread, so they do not see scripts either.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::process {

// ---- functions of CPython's C API for scripts, looked up by name ----

/// PyMethodDef.
struct PythonMethod {
  const char* name;
  void* (*function)(void* self, void* argument);
  int flags;
  const char* documentation;
};
inline constexpr int kNoArguments = 4;  ///< METH_NOARGS
inline constexpr int kOneArgument = 8;  ///< METH_O

// clang-format off
#define TIDEMARK_PYTHON_FUNCTIONS(F)                                                                      \
  F(int, Py_AddPendingCall, (int (*function)(void*), void* argument))                                    \
  F(int, PySys_Audit, (const char* event, const char* format, ...))                                       \
  F(void*, Py_CompileString, (const char* text, const char* file, int start))                            \
  F(void*, PyEval_EvalCode, (void* code, void* globals, void* locals))                                   \
  F(void*, PyDict_New, ())                                                                                \
  F(int, PyDict_SetItemString, (void* dict, const char* key, void* value))                                \
  F(const char*, Py_GetVersion, ())                                                                       \
  F(void*, PySys_GetObject, (const char* name))                                                           \
  F(void*, PyDict_GetItemString, (void* dict, const char* key))                                           \
  F(void*, PyEval_GetBuiltins, ())                                                                        \
  F(void*, PyCFunction_NewEx, (PythonMethod* method, void* self, void* module))                           \
  F(void*, PyObject_CallFunctionObjArgs, (void* function, ...))                                           \
  F(int, PyObject_IsTrue, (void* object))                                                                 \
  F(void*, PyObject_GetAttrString, (void* object, const char* name))                                      \
  F(void*, PyErr_NoMemory, ())                                                                            \
  F(void, PyErr_Clear, ())                                                                                \
  F(int, PyBytes_AsStringAndSize, (void* bytes, char** data, std::ptrdiff_t* size))                       \
  F(void*, PyBytes_FromStringAndSize, (const char* data, std::ptrdiff_t size))                            \
  F(void*, PyList_New, (std::ptrdiff_t size))                                                             \
  F(int, PyList_Append, (void* list, void* item))                                                         \
  F(void*, PyLong_FromUnsignedLongLong, (unsigned long long number))                                      \
  F(unsigned long long, PyLong_AsUnsignedLongLong, (void* number))                                        \
  F(void, Py_DecRef, (void* object))                                                                      \
  F(void*, PyThreadState_Get, ())                                                                         \
  F(void*, PyThreadState_New, (void* interpreter))                                                        \
  F(void, PyThreadState_Clear, (void* thread))                                                            \
  F(void, PyThreadState_DeleteCurrent, ())                                                                \
  F(void*, PyEval_SaveThread, ())                                                                         \
  F(void, PyEval_RestoreThread, (void* thread))                                                           \
  F(void*, PyThreadState_GetInterpreter, (void* thread))                                                  \
  F(void*, PyInterpreterState_ThreadHead, (void* interpreter))                                            \
  F(void*, PyThreadState_Next, (void* thread))
// clang-format on

/// One member for each function, with the same name.
struct PythonApi {
// A declaration cannot have its name and parameters in parentheses of their own.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TIDEMARK_PYTHON_MEMBER(result, name, arguments) result(*name) arguments;
  TIDEMARK_PYTHON_FUNCTIONS(TIDEMARK_PYTHON_MEMBER)
#undef TIDEMARK_PYTHON_MEMBER
  void (*PyThreadState_EnterTracing)(void* thread);  ///< from 3.11 on, else null
  void (*PyThreadState_LeaveTracing)(void* thread);
  int (*Py_IsFinalizing)();  ///< null if it is not exported
};

/// The functions, or null if one is missing. The same at each call.
const PythonApi* python_api() noexcept;

// ---- scripts ----

/// A script with its own namespace, which lives as long as the interpreter. It defines run(), which returns whether to
/// run again, and has quietly() of quiet.py. All members need the GIL.
class Script {
 public:
  /// The arguments outlive it. `name`: of its file in tracebacks; `methods`: functions that the script can call.
  template <std::size_t kCount>
  constexpr Script(const char* name, const char* text, PythonMethod (&methods)[kCount]) noexcept
      : name_(name), text_(text), methods_(methods), method_count_(kCount) {}

  enum class Outcome {
    done,
    again,
    failed,  ///< quietly
    audited  ///< not run: see is_audited()
  };

  /// Calls one of its functions on a thread of this library, and returns when that is done; the calling thread, which
  /// holds the GIL, releases it meanwhile. Loads the script at the first call. Does nothing while the interpreter
  /// finalizes, in interpreters other than the first call's, and if the program has audit hooks. `argument`: null for
  /// none.
  Outcome run(const char* function = "run", void* argument = nullptr) noexcept;

  /// Processor time of all calls.
  [[nodiscard]] std::uint64_t processor_ns() const noexcept { return processor_ns_; }

 private:
  struct Call;
  static void* run_call(void* call) noexcept;
  Outcome call(const char* function, void* argument) noexcept;
  void load() noexcept;

  const char* name_;
  const char* text_;
  PythonMethod* methods_;
  std::size_t method_count_;
  void* interpreter_ = nullptr;  // the one that loaded it
  void* names_ = nullptr;        // null: it could not be loaded
  std::uint64_t processor_ns_ = 0;
};

/// Whether the program has audit hooks (sys.addaudithook, PySys_AddAuditHook): they would see the script's actions, and
/// may end the program because of them. This check calls no hook. With the GIL.
bool is_audited() noexcept;

/// Schedules the function, which returns 0, on the main thread, as Py_AddPendingCall does. Any thread, without the GIL.
/// False on failure.
bool schedule_script(int (*function)(void*)) noexcept;

}  // namespace tidemark::process
