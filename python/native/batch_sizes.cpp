#include "batch_sizes.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "batching/batch_search.h"
#include "python_objects.h"

namespace tidemark::python {
namespace {

constexpr char kSearch[] = "tidemark.batch_search";

std::size_t size_of(PyObject* object) {
  const std::size_t value = PyLong_AsSize_t(object);
  if (value == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) throw PythonError();
  return value;
}

std::optional<std::size_t> known_size(PyObject* object) {
  return object == Py_None ? std::nullopt : std::optional(size_of(object));
}

Object size_or_none(std::optional<std::size_t> value) {
  return value ? Object(PyLong_FromSize_t(*value)) : none();
}

Object number_or_none(std::optional<double> value) {
  return value ? Object(PyFloat_FromDouble(*value)) : none();
}

const char* name_of(BatchSearchEnd end) {
  switch (end) {
    case BatchSearchEnd::searching:
      return "searching";
    case BatchSearchEnd::found:
      return "found";
    case BatchSearchEnd::maximum_fits:
      return "maximum";
    case BatchSearchEnd::nothing_fits:
      return "nothing_fits";
    case BatchSearchEnd::probes_used:
      return "probes";
  }
  return "searching";
}

}  // namespace

PyObject* batch_search(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* start = nullptr;
    PyObject* maximum = nullptr;
    PyObject* multiple = nullptr;
    BatchSearchOptions options;
    PyObject* probes = nullptr;
    if (PyArg_ParseTuple(arguments, "OOOdO:batch_search", &start, &maximum, &multiple, &options.margin, &probes) == 0) {
      throw PythonError();
    }
    options.start = size_of(start);
    options.maximum = known_size(maximum);
    options.multiple_of = size_of(multiple);
    options.probes = size_of(probes);
    auto search = BatchSearch::create(options);
    if (!search) raise(PyExc_ValueError, search.error().message);
    return capsule(kSearch, *std::move(search));
  });
}

PyObject* next_batch(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] { return size_or_none(from_capsule<BatchSearch>(handle, kSearch).next()); });
}

PyObject* report_batch(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* size = nullptr;
    int fits = 0;
    PyObject* peak = nullptr;
    PyObject* limit = nullptr;
    if (PyArg_ParseTuple(arguments, "OOpOO:report_batch", &handle, &size, &fits, &peak, &limit) == 0) {
      throw PythonError();
    }
    BatchSearch& search = from_capsule<BatchSearch>(handle, kSearch);
    search.report(size_of(size), fits != 0, known_size(peak));
    if (const auto bytes = known_size(limit)) search.set_limit(*bytes);
    return none();
  });
}

PyObject* suppose_batch(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* size = nullptr;
    int fits = 0;
    PyObject* peak = nullptr;
    if (PyArg_ParseTuple(arguments, "OOpO:suppose_batch", &handle, &size, &fits, &peak) == 0) throw PythonError();
    from_capsule<BatchSearch>(handle, kSearch).suppose(size_of(size), fits != 0, known_size(peak));
    return none();
  });
}

PyObject* batch_result(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    const BatchSearchResult result = from_capsule<BatchSearch>(handle, kSearch).result();
    const Object end = text(name_of(result.end));
    const Object size = size_or_none(result.batch_size);
    const Object fails = size_or_none(result.does_not_fit);
    const Object slope = number_or_none(result.slope_bytes);
    const Object intercept = number_or_none(result.intercept_bytes);
    return Object(PyTuple_Pack(5, end.get(), size.get(), fails.get(), slope.get(), intercept.get()));
  });
}

}  // namespace tidemark::python
