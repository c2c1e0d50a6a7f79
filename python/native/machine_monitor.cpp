#include "machine_monitor.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "live/monitor.h"
#include "python_objects.h"
#include "report/json/watch.h"

namespace tidemark::python {
namespace {

constexpr char kMonitor[] = "tidemark.monitor";

using OwnedMonitor = std::unique_ptr<MachineMonitor>;

}  // namespace

PyObject* watch_machine(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* devices = nullptr;
    double interval = 0;
    double threshold = 0;
    if (PyArg_ParseTuple(arguments, "Odd:watch_machine", &devices, &interval, &threshold) == 0) throw PythonError();
    MonitorOptions options;
    options.interval = std::chrono::nanoseconds(std::llround(interval * 1e9));
    options.forecast.threshold_percent = threshold;
    const Py_ssize_t count = PyList_Size(devices);
    if (count < 0) throw PythonError();
    for (Py_ssize_t index = 0; index < count; ++index) {
      options.choice.devices.push_back(bytes_of(PyList_GetItem(devices, index)));
    }
    auto monitor = std::make_unique<MachineMonitor>(options);
    monitor->start();
    return capsule(kMonitor, std::move(monitor));
  });
}

PyObject* risk_changes(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    OwnedMonitor& monitor = from_capsule<OwnedMonitor>(handle, kMonitor);
    std::vector<std::string> changes;
    std::vector<std::string> missing;
    if (monitor) {
      const WithoutGil others_run;
      static_cast<void>(monitor->update());
      for (const RiskChange& change : monitor->changes()) changes.push_back(to_json(change));
      missing = monitor->state().missing_keys;
    }
    if (!missing.empty())
      raise_tidemark_error("there is no device " + missing.front() + " here (`tidemark devices` lists them)");
    Object list(PyList_New(0));
    for (const std::string& change : changes) {
      append(list, Object(PyBytes_FromStringAndSize(change.data(), static_cast<Py_ssize_t>(change.size()))));
    }
    return list;
  });
}

PyObject* stop_watching(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    OwnedMonitor& monitor = from_capsule<OwnedMonitor>(handle, kMonitor);
    {
      const WithoutGil others_run;
      monitor.reset();
    }
    return none();
  });
}

}  // namespace tidemark::python
