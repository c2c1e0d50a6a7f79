// Monitors of the machine for python/tidemark, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// watch_machine(devices: list[bytes], interval_s: float, threshold_percent: float, follow: bool, keep_events: bool)
/// -> handle: of a watch that has not begun. `follow`: what is recorded meanwhile.
PyObject* watch_machine(PyObject* module, PyObject* arguments);
PyObject* start_watching(PyObject* module, PyObject* handle);
/// Waits for what a driver is doing, a second at most.
PyObject* stop_watching(PyObject* module, PyObject* handle);
PyObject* is_watching(PyObject* module, PyObject* handle);
/// risk_changes(handle) -> list[bytes]: changes of risk since the last call, each as JSON. Never waits.
PyObject* risk_changes(PyObject* module, PyObject* handle);
/// watch_report(handle, kind, threshold_mb_per_minute, tracking) -> bytes: JSON; kind is "profile", "oom", "leak" or
/// "fragment".
PyObject* watch_report(PyObject* module, PyObject* arguments);

}  // namespace tidemark::python
