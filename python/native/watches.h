// Monitors of the machine for python/tidemark, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// watch_machine(kind: str, devices: list[bytes], interval_s: float, interval_name: str, threshold: float, tracking:
/// bool) -> handle: a watch that is not started. kind: the report, "profile", "oom", "leak" or "fragment"; threshold:
/// percent for "oom", MB per minute for "leak", ignored for others; tracking: for "leak". ValueError for invalid
/// arguments, which names the interval `interval_name`.
PyObject* watch_machine(PyObject* module, PyObject* arguments);
PyObject* start_watching(PyObject* module, PyObject* handle);
/// Waits for a running driver call, at most a second.
PyObject* stop_watching(PyObject* module, PyObject* handle);
PyObject* is_watching(PyObject* module, PyObject* handle);
/// risk_changes(handle) -> list[bytes]: changes of risk since the last call, each as JSON. Never waits.
PyObject* risk_changes(PyObject* module, PyObject* handle);
/// watch_report(handle, kind) -> bytes: JSON; kind: see watch_machine().
PyObject* watch_report(PyObject* module, PyObject* arguments);

}  // namespace tidemark::python
