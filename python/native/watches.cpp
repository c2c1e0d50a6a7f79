#include "watches.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "inprocess/background_watch.h"
#include "python_objects.h"
#include "report/monitor/json.h"

namespace tidemark::python {
namespace {

constexpr char kWatch[] = "tidemark.watch";
constexpr std::chrono::nanoseconds kKeptWindow = std::chrono::minutes(10);

using OwnedWatch = std::unique_ptr<BackgroundWatch>;

BackgroundWatch& watch_of(PyObject* handle) {
  return *from_capsule<OwnedWatch>(handle, kWatch);
}

template <typename Report>
Result<std::string> as_json(const Result<Report>& report) {
  return report ? Result(to_json(*report)) : Result<std::string>(report.error());
}

Result<std::string> report_of(BackgroundWatch& watch, const std::string& kind, double threshold, bool tracking) {
  if (kind == "profile") return as_json(watch.profile());
  if (kind == "oom") return as_json(watch.oom());
  if (kind == "leak") return as_json(watch.leak(threshold * static_cast<double>(kMiB), tracking));
  if (kind == "fragment") return as_json(watch.fragment());
  return Error{"there is no report " + kind};
}

}  // namespace

PyObject* watch_machine(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* devices = nullptr;
    double interval = 0;
    double threshold = 0;
    int follow = 0;
    int keep_events = 0;
    if (PyArg_ParseTuple(arguments, "Oddpp:watch_machine", &devices, &interval, &threshold, &follow, &keep_events) ==
        0) {
      throw PythonError();
    }
    BackgroundWatchOptions options;
    options.monitor.interval = std::chrono::nanoseconds(std::llround(interval * 1e9));
    options.monitor.forecast.threshold_percent = threshold;
    options.follow = follow != 0;
    if (keep_events != 0) options.window = SlidingWindow::Limits{kKeptWindow};
    const Py_ssize_t count = PyList_Size(devices);
    if (count < 0) throw PythonError();
    for (Py_ssize_t index = 0; index < count; ++index) {
      options.monitor.choice.devices.push_back(bytes_of(PyList_GetItem(devices, index)));
    }
    return capsule(kWatch, std::make_unique<BackgroundWatch>(std::move(options)));
  });
}

PyObject* start_watching(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    BackgroundWatch& watch = watch_of(handle);
    {
      const WithoutGil others_run;
      watch.start();
    }
    return none();
  });
}

PyObject* stop_watching(PyObject* /*module*/, PyObject* handle) {
  return guarded([&] {
    BackgroundWatch& watch = watch_of(handle);
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
    BackgroundWatch& watch = watch_of(handle);
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
    double threshold = 0;
    int tracking = 0;
    if (PyArg_ParseTuple(arguments, "OUdp:watch_report", &handle, &kind, &threshold, &tracking) == 0) {
      throw PythonError();
    }
    BackgroundWatch& watch = watch_of(handle);
    const std::string wanted = string_of(kind);
    const auto json = [&] {
      const WithoutGil others_run;
      return report_of(watch, wanted, threshold, tracking != 0);
    }();
    if (!json) raise_tidemark_error(json.error().message);
    return Object(PyBytes_FromStringAndSize(json->data(), static_cast<Py_ssize_t>(json->size())));
  });
}

}  // namespace tidemark::python
