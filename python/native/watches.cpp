#include "watches.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "monitor/engine.h"
#include "monitor/monitor_thread.h"
#include "python_objects.h"
#include "query/results/machine_results.h"

namespace tidemark::python {
namespace {

constexpr char kWatch[] = "tidemark.watch";

using OwnedWatch = std::unique_ptr<MonitorThread>;

MonitorThread& watch_of(PyObject* handle) {
  return *from_capsule<OwnedWatch>(handle, kWatch);
}

template <typename Report>
Result<std::string> as_json(const Result<Report>& report) {
  return report ? Result(to_json(*report)) : Result<std::string>(report.error());
}

Result<std::string> report_of(MonitorThread& watch, const std::string& kind) {
  if (kind == "profile") return as_json(watch.profile());
  if (kind == "oom") return as_json(watch.oom());
  if (kind == "leak") return as_json(watch.leak());
  if (kind == "fragment") return as_json(watch.fragment());
  return Error{"there is no report " + kind};
}

}  // namespace

PyObject* watch_machine(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* kind = nullptr;
    PyObject* devices = nullptr;
    double interval = 0;
    PyObject* interval_name = nullptr;
    double threshold = 0;
    int tracking = 0;
    if (PyArg_ParseTuple(arguments, "UOdUdp:watch_machine", &kind, &devices, &interval, &interval_name, &threshold,
                         &tracking) == 0) {
      throw PythonError();
    }
    const OptionNames names = {string_of(interval_name), "threshold", "threshold"};
    const auto between = sampling_interval(interval, names.interval);
    if (!between) raise(PyExc_ValueError, between.error().message);
    EngineOptions options;
    options.machine.interval = *between;
    options.tracking = tracking != 0;
    const std::string wanted = string_of(kind);
    if (wanted == "oom") options.machine.forecast.threshold_percent = threshold;
    if (wanted == "leak") options.leak_bytes_per_minute = threshold * static_cast<double>(kMiB);
    if (wanted == "fragment" || options.tracking) options.window = kReportWindow;
    const Py_ssize_t count = PyList_Size(devices);
    if (count < 0) throw PythonError();
    for (Py_ssize_t index = 0; index < count; ++index) {
      options.machine.choice.devices.push_back(bytes_of(PyList_GetItem(devices, index)));
    }
    if (const auto status = check(options, names); !status) raise(PyExc_ValueError, status.error().message);
    return capsule(kWatch, std::make_unique<MonitorThread>(std::move(options)));
  });
}

PyObject* start_watching(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    MonitorThread& watch = watch_of(handle);
    {
      const WithoutGil others_run;
      watch.start();
    }
    return none();
  });
}

PyObject* stop_watching(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    MonitorThread& watch = watch_of(handle);
    {
      const WithoutGil others_run;
      watch.stop();
    }
    return none();
  });
}

PyObject* is_watching(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] { return Object(PyBool_FromLong(watch_of(handle).watching() ? 1 : 0)); });
}

PyObject* risk_changes(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    MonitorThread& watch = watch_of(handle);
    const auto changes = [&] {
      const WithoutGil others_run;
      return watch.take_changes();
    }();
    if (!changes) raise_tidemark_error(changes.error().message);
    Object list(PyList_New(0));
    for (const RiskChange& change : *changes) {
      const std::string json = to_json(change);
      append(list, Object(PyBytes_FromStringAndSize(json.data(), static_cast<Py_ssize_t>(json.size()))));
    }
    return list;
  });
}

PyObject* watch_report(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* kind = nullptr;
    if (PyArg_ParseTuple(arguments, "OU:watch_report", &handle, &kind) == 0) throw PythonError();
    MonitorThread& watch = watch_of(handle);
    const std::string wanted = string_of(kind);
    const auto json = [&] {
      const WithoutGil others_run;
      return report_of(watch, wanted);
    }();
    if (!json) raise_tidemark_error(json.error().message);
    return Object(PyBytes_FromStringAndSize(json->data(), static_cast<Py_ssize_t>(json->size())));
  });
}

}  // namespace tidemark::python
