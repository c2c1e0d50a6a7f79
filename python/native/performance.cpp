#include "performance.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "inprocess/performance/training_monitor.h"
#include "monitor/engine.h"
#include "publish/metrics/families.h"
#include "publish/metrics/prometheus.h"
#include "python_objects.h"
#include "query/results/machine_results.h"
#include "report/chart/chart.h"

namespace tidemark::python {
namespace {

constexpr char kMonitor[] = "tidemark.performance";

using OwnedMonitor = std::unique_ptr<TrainingMonitor>;

TrainingMonitor& monitor_of(PyObject* handle) {
  return *from_capsule<OwnedMonitor>(handle, kMonitor);
}

PyObject* truth(bool value) {
  return PyBool_FromLong(value ? 1 : 0);
}

void check_count(Py_ssize_t count, Py_ssize_t expected) {
  if (count != expected) raise(PyExc_TypeError, "wrong number of arguments");
}

std::int64_t integer_of(PyObject* object) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return value;
}

Object bytes(const std::string& text) {
  return Object(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

PerformanceReport report_without_gil(TrainingMonitor& monitor) {
  const WithoutGil others_run;
  return monitor.report();
}

}  // namespace

PyObject* performance_monitor(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* devices = nullptr;
    double interval = 0;
    PyObject* disk = nullptr;
    if (PyArg_ParseTuple(arguments, "OdS:performance_monitor", &devices, &interval, &disk) == 0) throw PythonError();
    TrainingMonitorOptions options;
    const auto between = sampling_interval(interval, "interval");
    if (!between) raise(PyExc_ValueError, between.error().message);
    options.interval = *between;
    options.disk = bytes_of(disk);
    const Py_ssize_t count = PyList_Size(devices);
    if (count < 0) throw PythonError();
    for (Py_ssize_t index = 0; index < count; ++index) {
      options.choice.devices.push_back(bytes_of(PyList_GetItem(devices, index)));
    }
    return capsule(kMonitor, std::make_unique<TrainingMonitor>(std::move(options)));
  });
}

PyObject* start_performance(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    TrainingMonitor& monitor = monitor_of(handle);
    {
      const WithoutGil others_run;
      monitor.start();
    }
    return none();
  });
}

PyObject* stop_performance(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    TrainingMonitor& monitor = monitor_of(handle);
    {
      const WithoutGil others_run;
      monitor.stop();
    }
    return none();
  });
}

PyObject* is_performance_watched(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] { return Object(truth(monitor_of(handle).watching())); });
}

PyObject* log_metric(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_count(count, 3);
    TrainingMonitor& monitor = monitor_of(arguments[0]);
    const double value = PyFloat_AsDouble(arguments[2]);
    if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    // 3.9's limited API cannot lend UTF-8: a bytes object, some 30 ns.
    const Object name(PyUnicode_AsUTF8String(arguments[1]));
    char* text = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(name.get(), &text, &size) != 0) throw PythonError();
    return Object(truth(monitor.log(std::string_view(text, static_cast<std::size_t>(size)), value)));
  });
}

PyObject* end_step(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_count(count, 2);
    const std::int64_t samples = integer_of(arguments[1]);
    if (samples < 0) raise(PyExc_ValueError, "samples: 0 or more");
    return Object(truth(monitor_of(arguments[0]).step(static_cast<std::uint64_t>(samples))));
  });
}

PyObject* begin_part(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    const std::int64_t now = StepTimes::now_ns();
    monitor_of(handle).part_began(now);
    return Object(PyLong_FromLongLong(now));
  });
}

PyObject* end_part(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_count(count, 3);
    const std::int64_t part = integer_of(arguments[1]);
    if (part < 0 || part >= static_cast<std::int64_t>(kStepParts)) raise(PyExc_ValueError, "no such part of a step");
    return Object(truth(monitor_of(arguments[0]).part_ended(static_cast<StepPart>(part), integer_of(arguments[2]))));
  });
}

PyObject* performance_report(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] { return bytes(to_json(report_without_gil(monitor_of(handle)))); });
}

PyObject* performance_page(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    PyObject* version = nullptr;
    if (PyArg_ParseTuple(arguments, "OU:performance_page", &handle, &version) == 0) throw PythonError();
    return bytes(prometheus_text(to_metrics(report_without_gil(monitor_of(handle)), string_of(version))));
  });
}

PyObject* performance_chart(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* handle = nullptr;
    int svg = 0;
    if (PyArg_ParseTuple(arguments, "Op:performance_chart", &handle, &svg) == 0) throw PythonError();
    const PerformanceReport report = report_without_gil(monitor_of(handle));
    const auto picture = draw_performance(report, svg != 0 ? ChartFormat::svg : ChartFormat::png);
    if (!picture) raise_tidemark_error(picture.error().message);
    return bytes(*picture);
  });
}

}  // namespace tidemark::python
