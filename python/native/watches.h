// Monitors of the machine for python/tidemark, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// watch_machine(kind: str, devices: list[bytes], interval_s: float, interval_name: str, threshold: float,
/// tracking: bool) -> handle: of a watch that has not begun. kind: the report that is wanted, "profile", "oom", "leak"
/// or "fragment"; threshold: percent for "oom", MB per minute for "leak", of no meaning for others; tracking: of
/// "leak". ValueError for what cannot be watched, which calls the interval `interval_name`.
PyObject* watch_machine(PyObject* module, PyObject* arguments);
PyObject* start_watching(PyObject* module, PyObject* handle);
/// Waits for what a driver is doing, a second at most.
PyObject* stop_watching(PyObject* module, PyObject* handle);
PyObject* is_watching(PyObject* module, PyObject* handle);
/// risk_changes(handle) -> list[bytes]: changes of risk since the last call, each as JSON. Never waits.
PyObject* risk_changes(PyObject* module, PyObject* handle);
/// watch_report(handle, kind) -> bytes: JSON; kind as watch_machine() has it.
PyObject* watch_report(PyObject* module, PyObject* arguments);

}  // namespace tidemark::python
