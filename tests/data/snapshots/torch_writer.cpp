// How torch_writer.pickle was made: PyTorch's own C++ pickler (torch::jit::Pickler, used as torch::cuda does for
// _memory_snapshot_pickled()) writes what small.pickle holds. By hand, once, with PyTorch 2.15:
//
//   g++ -std=c++20 -O1 -shared -fPIC -o torch_writer.so torch_writer.cpp -I$TORCH/include \
//     -I$TORCH/include/torch/csrc/api/include $(python3-config --includes) -L$TORCH/lib -ltorch -ltorch_cpu -lc10
//   python3 -c 'import torch, pickle, torch_writer
//   data = pickle.load(open("small.pickle", "rb"))
//   open("torch_writer.pickle", "wb").write(torch_writer.pickled(data))'
#include <pybind11/pybind11.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace py = pybind11;
using c10::IValue;

namespace {

/// The same Python object becomes the same value, as PyTorch shares texts, frames and lists of them.
class Converter {
 public:
  IValue convert(const py::handle& object) {
    const auto known = values_.find(object.ptr());
    if (known != values_.end()) return known->second;
    IValue value = make(object);
    if (py::isinstance<py::dict>(object) || py::isinstance<py::list>(object)) values_.emplace(object.ptr(), value);
    return value;
  }

 private:
  IValue make(const py::handle& object) {
    if (object.is_none()) return {};
    if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
    if (py::isinstance<py::int_>(object)) return static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(object.ptr()));
    if (py::isinstance<py::float_>(object)) return object.cast<double>();
    if (py::isinstance<py::str>(object)) return object.cast<std::string>();
    if (py::isinstance<py::tuple>(object)) {
      return std::tuple<std::int64_t, std::int64_t>(object.cast<std::tuple<std::int64_t, std::int64_t>>());
    }
    if (py::isinstance<py::dict>(object)) {
      c10::Dict<IValue, IValue> dict(c10::AnyType::get(), c10::AnyType::get());
      for (const auto& [key, value] : object.cast<py::dict>()) dict.insert(convert(key), convert(value));
      return dict;
    }
    c10::List<IValue> list(c10::AnyType::get());
    for (const auto& item : object.cast<py::list>()) list.push_back(convert(item));
    return list;
  }

  std::map<PyObject*, IValue> values_;
};

py::bytes pickled(const py::handle& object) {
  std::string out;
  {
    torch::jit::Pickler pickler([&](const char* data, std::size_t size) { out.append(data, size); }, nullptr, nullptr,
                                nullptr, nullptr, false);
    pickler.protocol();
    pickler.pushIValue(Converter().convert(object));
    pickler.stop();
  }
  return out;
}

}  // namespace

PYBIND11_MODULE(torch_writer, module) {
  module.def("pickled", &pickled);
}
