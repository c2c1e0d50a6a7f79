// The CPython of this process: its version and the few symbols that a stack walk needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/python/layout.h"

namespace tidemark::process {

/// Functions that read objects. They need the GIL, and on objects of built-in types run no Python code.
struct ObjectFunctions {
  void* (*modules)();                             ///< PyImport_GetModuleDict; borrowed
  void* (*module_dict)(void*);                    ///< PyModule_GetDict; borrowed
  void* (*attribute)(void*, const char*);         ///< PyObject_GetAttrString; new
  void* (*dict_item)(void*, void*);               ///< PyDict_GetItem; borrowed
  void* (*dict_item_string)(void*, const char*);  ///< PyDict_GetItemString; borrowed
  std::ptrdiff_t (*list_size)(void*);             ///< PyList_Size; -1 if it is not a list
  void* (*list_item)(void*, std::ptrdiff_t);      ///< PyList_GetItem; borrowed
  std::ptrdiff_t (*tuple_size)(void*);            ///< PyTuple_Size; -1 if it is not a tuple
  void* (*tuple_item)(void*, std::ptrdiff_t);     ///< PyTuple_GetItem; borrowed
  long (*as_long)(void*);                         ///< PyLong_AsLong
  void (*release)(void*);                         ///< Py_DecRef
  void* (*error)();                               ///< PyErr_Occurred; borrowed
  void (*clear_error)();                          ///< PyErr_Clear
  bool complete;                                  ///< all were found
};

/// Looked up once and constant from then on. No Python header is used: pointers to the interpreter's objects are
/// `void*` or addresses.
struct Interpreter {
  void* scope;  ///< for dlsym
  // Each of these reads a variable or two: none takes a lock or needs the GIL.
  void* (*this_thread_state)();     ///< PyGILState_GetThisThreadState: null for threads without one
  void* (*current_thread_state)();  ///< the calling thread's state if it holds the GIL (…GetUnchecked)
  void* (*interpreter_of)(void*);   ///< PyThreadState_GetInterpreter
  int (*is_finalizing)();           ///< Py_IsFinalizing
  ObjectFunctions objects;
  std::uintptr_t code_type;            ///< &PyCode_Type
  std::uintptr_t runtime;              ///< &_PyRuntime, or 0
  std::uintptr_t eval_low, eval_high;  ///< see python_eval_range()
  std::uint16_t version;               ///< 0x030B is 3.11
  char version_text[24];               ///< "3.11.7"
  bool ordinary;                       ///< all symbols found; neither a debug nor a free-threaded build
};

/// Fills `*out` and returns true if this process has a CPython, initialized or not. Takes the dynamic loader's lock.
bool find_interpreter(Interpreter* out) noexcept;

enum class Verdict : std::uint8_t {
  no_frames,  ///< the calling thread runs no Python function to compare with
  fits,
  differs,
};

/// Compares the layout with the interpreter's own data (_Py_DebugOffsets from 3.13 on, sizes of its types,
/// PyThreadState_GetInterpreter) and with the frames and code objects of the calling thread. Never faults: everything
/// the layout points at is read through system calls. Slow (microseconds). May change errno.
Verdict verify_layout(const Layout& layout, const Interpreter& interpreter) noexcept;

}  // namespace tidemark::process
