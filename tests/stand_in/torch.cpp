// A module `torch` that replaces PyTorch in programs that test the recorder and not PyTorch: one-dimensional tensors on
// the CPU, with memory from the libc10 of tests/fakes, with the sizes that PyTorch requests. It starts in some
// hundredths of PyTorch's time.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fakes/c10.h"

namespace {

enum class Kind : std::uint8_t { uint8, float16, float32, int64 };

struct Dtype {
  PyObject_HEAD Kind kind;
  char is_floating_point;
  Py_ssize_t itemsize;
};

struct Tensor {
  PyObject_HEAD void* data;  ///< owned unless there is a base
  Py_ssize_t count;
  Dtype* dtype;
  PyObject* base;  ///< owner of a view's memory
};

PyTypeObject* dtype_type = nullptr;
PyTypeObject* tensor_type = nullptr;
Dtype* dtypes[4] = {};

Dtype* dtype_of(Kind kind) {
  return dtypes[static_cast<int>(kind)];
}

Tensor* new_tensor(Dtype* dtype, Py_ssize_t count) {
  auto* tensor = PyObject_New(Tensor, tensor_type);
  if (tensor == nullptr) return nullptr;
  Py_INCREF(dtype);
  tensor->dtype = dtype;
  tensor->count = count;
  tensor->base = nullptr;
  tensor->data = fakes_cpu_allocate(static_cast<std::size_t>(count * dtype->itemsize));
  return tensor;
}

void free_tensor(PyObject* self) {
  auto* tensor = reinterpret_cast<Tensor*>(self);
  if (tensor->base == nullptr) {
    fakes_cpu_free(tensor->data);
  } else {
    Py_DECREF(tensor->base);
  }
  Py_DECREF(tensor->dtype);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

void put(const Tensor& tensor, Py_ssize_t index, double value) {
  switch (tensor.dtype->kind) {
    case Kind::uint8:
      static_cast<std::uint8_t*>(tensor.data)[index] = static_cast<std::uint8_t>(value);
      break;
    case Kind::float16:
      static_cast<std::uint16_t*>(tensor.data)[index] = 0;
      break;
    case Kind::float32:
      static_cast<float*>(tensor.data)[index] = static_cast<float>(value);
      break;
    case Kind::int64:
      static_cast<std::int64_t*>(tensor.data)[index] = static_cast<std::int64_t>(value);
      break;
  }
}

double get(const Tensor& tensor, Py_ssize_t index) {
  switch (tensor.dtype->kind) {
    case Kind::uint8:
      return static_cast<const std::uint8_t*>(tensor.data)[index];
    case Kind::float16:
      return 0;
    case Kind::float32:
      return static_cast<const float*>(tensor.data)[index];
    case Kind::int64:
      return static_cast<double>(static_cast<const std::int64_t*>(tensor.data)[index]);
  }
  return 0;
}

/// The number of elements for the given sizes: (3, 4) or ((3, 4),). -1 with an exception.
Py_ssize_t product(PyObject* sizes) {
  if (PyTuple_Size(sizes) == 1 && PyTuple_Check(PyTuple_GetItem(sizes, 0))) return product(PyTuple_GetItem(sizes, 0));
  Py_ssize_t count = 1;
  for (Py_ssize_t n = 0; n < PyTuple_Size(sizes); ++n) {
    const Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GetItem(sizes, n));
    if (size < 0) return -1;
    count *= size;
  }
  return count;
}

/// `dtype=` of the keywords, or the default; null with an exception.
Dtype* wanted_dtype(PyObject* keywords, Kind usual) {
  PyObject* found = keywords != nullptr ? PyDict_GetItemString(keywords, "dtype") : nullptr;
  if (keywords != nullptr && PyDict_Size(keywords) != (found != nullptr ? 1 : 0)) {
    PyErr_SetString(PyExc_TypeError, "what stands in for PyTorch knows no keyword but dtype");
    return nullptr;
  }
  return found != nullptr ? reinterpret_cast<Dtype*>(found) : dtype_of(usual);
}

Tensor* make(PyObject* sizes, PyObject* keywords) {
  const Py_ssize_t count = product(sizes);
  Dtype* dtype = count >= 0 ? wanted_dtype(keywords, Kind::float32) : nullptr;
  return dtype != nullptr ? new_tensor(dtype, count) : nullptr;
}

PyObject* empty(PyObject* /*module*/, PyObject* sizes, PyObject* keywords) {
  return reinterpret_cast<PyObject*>(make(sizes, keywords));
}

PyObject* ones(PyObject* /*module*/, PyObject* sizes, PyObject* keywords) {
  Tensor* tensor = make(sizes, keywords);
  for (Py_ssize_t n = 0; tensor != nullptr && n < tensor->count; ++n) put(*tensor, n, 1);
  return reinterpret_cast<PyObject*>(tensor);
}

PyObject* full(PyObject* /*module*/, PyObject* arguments) {
  PyObject* sizes = nullptr;
  PyObject* value = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &sizes, &value)) return nullptr;
  const Py_ssize_t count = product(sizes);
  if (count < 0) return nullptr;
  Tensor* tensor = new_tensor(dtype_of(PyFloat_Check(value) ? Kind::float32 : Kind::int64), count);
  const double number = PyFloat_AsDouble(value);
  for (Py_ssize_t n = 0; tensor != nullptr && n < count; ++n) put(*tensor, n, number);
  return reinterpret_cast<PyObject*>(tensor);
}

PyObject* arange(PyObject* /*module*/, PyObject* end) {
  const Py_ssize_t count = PyLong_AsSsize_t(end);
  if (count < 0) return nullptr;
  Tensor* tensor = new_tensor(dtype_of(Kind::int64), count);
  for (Py_ssize_t n = 0; tensor != nullptr && n < count; ++n) put(*tensor, n, static_cast<double>(n));
  return reinterpret_cast<PyObject*>(tensor);
}

PyObject* set_num_threads(PyObject* /*module*/, PyObject* /*count*/) {
  Py_RETURN_NONE;
}

PyObject* numel(PyObject* self, PyObject* /*nothing*/) {
  return PyLong_FromSsize_t(reinterpret_cast<Tensor*>(self)->count);
}

PyObject* element_size(PyObject* self, PyObject* /*nothing*/) {
  return PyLong_FromSsize_t(reinterpret_cast<Tensor*>(self)->dtype->itemsize);
}

PyObject* sum(PyObject* self, PyObject* /*nothing*/) {
  const Tensor& tensor = *reinterpret_cast<Tensor*>(self);
  double total = 0;
  for (Py_ssize_t n = 0; n < tensor.count; ++n) total += get(tensor, n);
  Tensor* result = new_tensor(dtype_of(tensor.dtype->is_floating_point ? Kind::float32 : Kind::int64), 1);
  if (result != nullptr) put(*result, 0, total);
  return reinterpret_cast<PyObject*>(result);
}

PyObject* add(PyObject* self, PyObject* number) {
  const Tensor& tensor = *reinterpret_cast<Tensor*>(self);
  const double added = PyFloat_AsDouble(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  Tensor* result = new_tensor(tensor.dtype, tensor.count);
  for (Py_ssize_t n = 0; result != nullptr && n < tensor.count; ++n) put(*result, n, get(tensor, n) + added);
  return reinterpret_cast<PyObject*>(result);
}

PyObject* item(PyObject* self, PyObject* /*nothing*/) {
  const Tensor& tensor = *reinterpret_cast<Tensor*>(self);
  if (tensor.count != 1) {
    PyErr_SetString(PyExc_RuntimeError, "a tensor of more or less than one element is no number");
    return nullptr;
  }
  const double value = get(tensor, 0);
  return tensor.dtype->is_floating_point ? PyFloat_FromDouble(value) : PyLong_FromDouble(value);
}

PyObject* multiply_matrices(PyObject* /*left*/, PyObject* /*right*/) {
  PyErr_SetString(PyExc_RuntimeError, "what stands in for PyTorch multiplies no matrices");
  return nullptr;
}

/// tensor[begin:end], a view.
PyObject* view(PyObject* self, PyObject* slice) {
  auto* tensor = reinterpret_cast<Tensor*>(self);
  Py_ssize_t begin = 0;
  Py_ssize_t end = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(slice, &begin, &end, &step) != 0) return nullptr;
  auto* part = PyObject_New(Tensor, tensor_type);
  if (part == nullptr) return nullptr;
  part->count = PySlice_AdjustIndices(tensor->count, &begin, &end, step);
  part->dtype = tensor->dtype;
  part->base = self;
  part->data = static_cast<char*>(tensor->data) + begin * tensor->dtype->itemsize;
  Py_INCREF(part->dtype);
  Py_INCREF(self);
  return reinterpret_cast<PyObject*>(part);
}

template <typename Function>
PyCFunction function(Function* called) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(called));
}

PyTypeObject* make_type(const char* name, std::size_t size, PyType_Slot* slots) {
  PyType_Spec spec{name, static_cast<int>(size), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

void add_dtype(PyObject* module, const char* name, Kind kind, Py_ssize_t itemsize, bool is_floating_point) {
  auto* dtype = PyObject_New(Dtype, dtype_type);
  dtype->kind = kind;
  dtype->itemsize = itemsize;
  dtype->is_floating_point = is_floating_point ? 1 : 0;
  dtypes[static_cast<int>(kind)] = dtype;
  Py_INCREF(dtype);
  PyModule_AddObject(module, name, reinterpret_cast<PyObject*>(dtype));
}

}  // namespace

PyMODINIT_FUNC PyInit_torch() {
  static PyMemberDef dtype_members[] = {
      {"is_floating_point", T_BOOL, offsetof(Dtype, is_floating_point), READONLY, nullptr},
      {"itemsize", T_PYSSIZET, offsetof(Dtype, itemsize), READONLY, nullptr},
      {}};
  static PyType_Slot dtype_slots[] = {{Py_tp_members, dtype_members}, {}};
  static PyMethodDef tensor_methods[] = {
      {"numel", numel, METH_NOARGS, nullptr}, {"element_size", element_size, METH_NOARGS, nullptr},
      {"sum", sum, METH_NOARGS, nullptr},     {"add", add, METH_O, nullptr},
      {"item", item, METH_NOARGS, nullptr},   {}};
  static PyType_Slot tensor_slots[] = {{Py_tp_methods, tensor_methods},
                                       {Py_tp_dealloc, reinterpret_cast<void*>(free_tensor)},
                                       {Py_nb_matrix_multiply, reinterpret_cast<void*>(multiply_matrices)},
                                       {Py_mp_subscript, reinterpret_cast<void*>(view)},
                                       {}};
  static PyMethodDef functions[] = {{"empty", function(empty), METH_VARARGS | METH_KEYWORDS, nullptr},
                                    {"ones", function(ones), METH_VARARGS | METH_KEYWORDS, nullptr},
                                    {"full", full, METH_VARARGS, nullptr},
                                    {"arange", arange, METH_O, nullptr},
                                    {"set_num_threads", set_num_threads, METH_O, nullptr},
                                    {}};
  static PyModuleDef definition{};
  definition.m_base = PyModuleDef_HEAD_INIT;
  definition.m_name = "torch";
  definition.m_size = -1;
  definition.m_methods = functions;
  dtype_type = make_type("torch.dtype", sizeof(Dtype), dtype_slots);
  tensor_type = make_type("torch.Tensor", sizeof(Tensor), tensor_slots);
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr || dtype_type == nullptr || tensor_type == nullptr) return nullptr;
  add_dtype(module, "uint8", Kind::uint8, 1, false);
  add_dtype(module, "float16", Kind::float16, 2, true);
  add_dtype(module, "float32", Kind::float32, 4, true);
  add_dtype(module, "int64", Kind::int64, 8, false);
  return module;
}
