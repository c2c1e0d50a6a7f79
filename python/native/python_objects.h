// RAII wrappers of CPython objects, within the limited API of 3.9.
#pragma once

#include <Python.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark::python {

/// Thrown after CPython has set an exception, which the caller of guarded() gets.
struct PythonError {};

/// Owns one reference; may be null.
class Object {
 public:
  Object() = default;
  /// Takes over a new reference. Throws PythonError if it is null.
  explicit Object(PyObject* owned) : object_(owned) {
    if (owned == nullptr) throw PythonError();
  }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const { return object_; }
  [[nodiscard]] PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

/// Lets other Python threads run while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

inline Object text(std::string_view utf8) {
  return Object(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

inline Object none() {
  Py_INCREF(Py_None);
  return Object(Py_None);
}

inline std::string bytes_of(PyObject* bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0) throw PythonError();
  return {data, static_cast<std::size_t>(size)};
}

/// The UTF-8 of a str. TypeError for other types.
inline std::string string_of(PyObject* text) {
  return bytes_of(Object(PyUnicode_AsUTF8String(text)).get());
}

inline void append(const Object& list, const Object& item) {
  if (PyList_Append(list.get(), item.get()) != 0) throw PythonError();
}

inline void set_item(const Object& dict, const char* key, const Object& value) {
  if (PyDict_SetItemString(dict.get(), key, value.get()) != 0) throw PythonError();
}

/// A capsule that owns a T, for the package's own modules only.
template <typename T>
Object capsule(const char* name, T value) {
  auto owned = std::make_unique<T>(std::move(value));
  Object made(PyCapsule_New(owned.get(), name, [](PyObject* self) {
    delete static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
  }));
  owned.release();  // owned by the capsule from here on
  return made;
}

template <typename T>
T& from_capsule(PyObject* object, const char* name) {
  void* const pointer = PyCapsule_GetPointer(object, name);
  if (pointer == nullptr) throw PythonError();
  return *static_cast<T*>(pointer);
}

/// Sets the package's own exception.
[[noreturn]] inline void raise_tidemark_error(std::string_view message) {
  const Object errors(PyImport_ImportModule("tidemark._errors"));
  const Object type(PyObject_GetAttrString(errors.get(), "TidemarkError"));
  PyErr_SetObject(type.get(), text(message).get());
  throw PythonError();
}

[[noreturn]] inline void raise(PyObject* type, std::string_view message) {
  PyErr_SetObject(type, text(message).get());
  throw PythonError();
}

/// The body of a function for Python: catches all C++ exceptions.
template <typename Function>
PyObject* guarded(const Function& function) noexcept {
  try {
    return function().release();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

}  // namespace tidemark::python
