// Slots for multi-interpreter support of a module of the stable ABI.
#pragma once

#include <Python.h>

#include <cstdlib>
#include <cstring>

namespace tidemark::python {

/// Slots of a module whose functions need no GIL for shared state. In CPython 3.12 and newer each interpreter may have
/// its own GIL; older versions refuse unknown slots. `fill` may be null. One set for each module.
inline PyModuleDef_Slot* slots_for(int (*fill)(PyObject*)) {
  constexpr int kMultipleInterpreters = 3;  // Py_mod_multiple_interpreters, which the limited API of 3.9 lacks
  void* const own_gil = reinterpret_cast<void*>(2);
  static PyModuleDef_Slot slots[3] = {};
  PyModuleDef_Slot* next = slots;
  if (fill != nullptr) *next++ = {Py_mod_exec, reinterpret_cast<void*>(fill)};
  const char* const version = Py_GetVersion();  // "3.12.1 (main, …"
  if (std::strncmp(version, "3.", 2) != 0 || std::atoi(version + 2) >= 12) *next = {kMultipleInterpreters, own_gil};
  return slots;
}

}  // namespace tidemark::python
