// The CPython of this process: its version and the few symbols of it that a stack walk needs.
#pragma once

#include <cstdint>

namespace tidemark::process {

/// Found once and constant from then on. No Python header is used: pointers to the interpreter's objects are `void*` or
/// addresses.
struct Interpreter {
  void* scope;  ///< for dlsym
  // Each of these reads a variable or two: none takes a lock or needs the GIL.
  void* (*this_thread_state)();        ///< PyGILState_GetThisThreadState: null for threads without one
  void* (*current_thread_state)();     ///< the calling thread's state if it holds the GIL (…GetUnchecked)
  void* (*interpreter_of)(void*);      ///< PyThreadState_GetInterpreter
  int (*is_finalizing)();              ///< Py_IsFinalizing
  std::uintptr_t code_type;            ///< &PyCode_Type
  std::uintptr_t runtime;              ///< &_PyRuntime, or 0
  std::uintptr_t eval_low, eval_high;  ///< see python_eval_range()
  std::uint16_t version;               ///< 0x030B is 3.11
  char version_text[24];               ///< "3.11.7"
  bool ordinary;                       ///< all symbols found; neither a debug nor a free-threaded build
};

/// Fills `*out` and returns true when this process has a CPython, initialized or not. Takes the dynamic loader's lock.
bool find_interpreter(Interpreter* out) noexcept;

}  // namespace tidemark::process
