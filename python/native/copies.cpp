#include "copies.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "python_objects.h"
#include "runtime/prefetch/host_to_device.h"

namespace tidemark::python {
namespace {

constexpr char kCopies[] = "tidemark.copies";

HostToDevice& copies_of(PyObject* handle) {
  return *from_capsule<HostToDevicePointer>(handle, kCopies);
}

std::vector<HostArrayCopy> arrays_of(PyObject* list) {
  std::vector<HostArrayCopy> arrays;
  for (Py_ssize_t index = 0; index < PyList_Size(list); ++index) {
    unsigned long long from = 0;
    unsigned long long to = 0;
    Py_ssize_t bytes = 0;
    int pinned = 0;
    if (PyArg_ParseTuple(PyList_GetItem(list, index), "KKnp", &from, &to, &bytes, &pinned) == 0) throw PythonError();
    if (bytes < 0) raise(PyExc_ValueError, "bytes: 0 or more");
    arrays.push_back({reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(from)), to,
                      static_cast<std::size_t>(bytes), pinned != 0});
  }
  return arrays;
}

}  // namespace

PyObject* host_to_device(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    HostToDeviceOptions options;
    Py_ssize_t chunk_bytes = 0;
    Py_ssize_t chunks = 0;
    Py_ssize_t threads = 0;
    if (PyArg_ParseTuple(arguments, "innn:host_to_device", &options.device, &chunk_bytes, &chunks, &threads) == 0) {
      throw PythonError();
    }
    if (chunk_bytes < 0 || chunks < 0 || threads < 0) raise(PyExc_ValueError, "sizes: more than 0");
    options.chunk_bytes = static_cast<std::size_t>(chunk_bytes);
    options.chunks = static_cast<std::size_t>(chunks);
    options.threads = static_cast<std::size_t>(threads);
    auto made = [&]() -> Result<HostToDevicePointer> {
      const WithoutGil others_run;
      const auto driver = cuda::driver();
      if (!driver) return driver.error();
      return HostToDevice::create(**driver, options);
    }();
    if (!made) raise_tidemark_error(made.error().message);
    return capsule(kCopies, std::move(*made));
  });
}

PyObject* copy_to_device(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* list = nullptr;
    if (PyArg_ParseTuple(arguments, "OO!:copy_to_device", &handle, &PyList_Type, &list) == 0) throw PythonError();
    HostToDevice& copies = copies_of(handle);
    const std::vector<HostArrayCopy> arrays = arrays_of(list);
    const Result<void> begun = [&] {
      const WithoutGil others_run;
      return copies.copy(arrays);
    }();
    if (!begun) raise_tidemark_error(begun.error().message);
    return none();
  });
}

PyObject* copy_stream(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    return Object(PyLong_FromUnsignedLongLong(reinterpret_cast<std::uintptr_t>(copies_of(handle).stream())));
  });
}

PyObject* pinned_bytes(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] { return Object(PyLong_FromSize_t(copies_of(handle).pinned_bytes())); });
}

}  // namespace tidemark::python
