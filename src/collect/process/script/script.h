// Python scripts of ours that run inside the program: on its main thread, between two bytecodes.
#pragma once

#include <cstddef>

namespace tidemark::process {

// ---- the functions of CPython's C API that scripts are run and served with, found by their names ----

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
  F(void*, PyRun_StringFlags, (const char* text, int start, void* globals, void* locals, void* flags))   \
  F(void*, PyDict_New, ())                                                                                \
  F(int, PyDict_SetItemString, (void* dict, const char* key, void* value))                                \
  F(void*, PyDict_GetItemString, (void* dict, const char* key))                                           \
  F(void*, PyEval_GetBuiltins, ())                                                                        \
  F(void*, PyCFunction_NewEx, (PythonMethod* method, void* self, void* module))                           \
  F(void*, PyObject_CallObject, (void* function, void* arguments))                                        \
  F(int, PyObject_IsTrue, (void* object))                                                                 \
  F(void*, PyObject_GetAttrString, (void* object, const char* name))                                      \
  F(int, PyErr_ExceptionMatches, (void* type))                                                            \
  F(void, PyErr_Clear, ())                                                                                \
  F(int, PyBytes_AsStringAndSize, (void* bytes, char** data, std::ptrdiff_t* size))                       \
  F(void*, PyBytes_FromStringAndSize, (const char* data, std::ptrdiff_t size))                            \
  F(void*, PyList_New, (std::ptrdiff_t size))                                                             \
  F(int, PyList_Append, (void* list, void* item))                                                         \
  F(void*, PyLong_FromUnsignedLongLong, (unsigned long long number))                                      \
  F(unsigned long long, PyLong_AsUnsignedLongLong, (void* number))                                        \
  F(void, Py_DecRef, (void* object))                                                                      \
  F(void*, PyThreadState_Get, ())                                                                         \
  F(void*, PyThreadState_GetInterpreter, (void* thread))                                                  \
  F(void*, PyInterpreterState_ThreadHead, (void* interpreter))                                            \
  F(void*, PyThreadState_Next, (void* thread))
// clang-format on

/// One of each, by its own name.
struct PythonApi {
// A declaration cannot have its name and parameters in parentheses of their own.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TIDEMARK_PYTHON_MEMBER(result, name, arguments) result(*name) arguments;
  TIDEMARK_PYTHON_FUNCTIONS(TIDEMARK_PYTHON_MEMBER)
#undef TIDEMARK_PYTHON_MEMBER
  void** PyExc_Exception;
  void (*PyThreadState_EnterTracing)(void* thread);  ///< from 3.11 on, else null
  void (*PyThreadState_LeaveTracing)(void* thread);
  int (*Py_IsFinalizing)();  ///< null where it has no name
};

/// The functions, or null where one is missing. The same at each call.
const PythonApi* python_api() noexcept;

// ---- scripts ----

/// A script in a namespace of its own, which lives as long as the interpreter. It defines run(), which returns whether
/// it is to be run again, and has quietly() of quiet.py. All of it with the GIL.
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

  /// Calls its run(), which neither a debugger nor a profiler of the program sees. Loads it at the first call. Nothing
  /// is done while the interpreter ends, and in other interpreters than the first call's.
  Outcome run() noexcept;

 private:
  void load() noexcept;

  const char* text_;
  PythonMethod* methods_;
  std::size_t method_count_;
  void* interpreter_ = nullptr;  // that has loaded it
  void* run_ = nullptr;          // null: it could not be loaded
};

/// Has the main thread call the function soon, as Py_AddPendingCall does: it returns 0, or -1 with an exception for the
/// program. Any thread, without the GIL. False where it cannot.
bool schedule_script(int (*function)(void*)) noexcept;

}  // namespace tidemark::process
