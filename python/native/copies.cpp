#include "copies.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "loading/device_conversions.h"
#include "loading/element_conversion.h"
#include "loading/host_to_device.h"
#include "python_objects.h"

namespace tidemark::python {
namespace {

constexpr char kCopies[] = "tidemark.copies";

struct Copies {
  explicit Copies(HostToDevicePointer made) : to_device(std::move(made)), conversions(*to_device) {}

  HostToDevicePointer to_device;
  DeviceConversions conversions;
};
using CopiesPointer = std::unique_ptr<Copies>;

HostToDevice& copies_of(PyObject* handle) {
  return *from_capsule<CopiesPointer>(handle, kCopies)->to_device;
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

ElementType type_named(const char* name) {
  for (const ElementType type :
       {ElementType::uint8, ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
    if (std::string_view(name) == element_name(type)) return type;
  }
  raise(PyExc_ValueError, "a type of elements: uint8, float32, float16 or bfloat16");
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
    if (chunk_bytes < 0 || chunks < 0 || threads < 0) raise(PyExc_ValueError, "sizes: 0 or more");
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
    return capsule(kCopies, std::make_unique<Copies>(std::move(*made)));
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

PyObject* convert_on_device(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    const char* from_type = nullptr;
    const char* to_type = nullptr;
    ElementConversion conversion;
    unsigned long long from = 0;
    unsigned long long to = 0;
    Py_ssize_t bytes = 0;
    if (PyArg_ParseTuple(arguments, "OssffKKn:convert_on_device", &handle, &from_type, &to_type, &conversion.scale,
                         &conversion.offset, &from, &to, &bytes) == 0) {
      throw PythonError();
    }
    if (bytes < 0) raise(PyExc_ValueError, "bytes: 0 or more");
    DeviceConversions& conversions = from_capsule<CopiesPointer>(handle, kCopies)->conversions;
    conversion.from = type_named(from_type);
    conversion.to = type_named(to_type);
    const auto result_bytes = converted_bytes(conversion, static_cast<std::size_t>(bytes));
    if (!result_bytes) raise_tidemark_error(result_bytes.error().message);
    const Result<void> begun = [&] {
      const WithoutGil others_run;
      return conversions.begin(conversion, from, to, *result_bytes / element_bytes(conversion.to));
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
