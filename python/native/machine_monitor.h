// A monitor of the machine for python/tidemark/_risks.py, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// watch_machine(devices: list[bytes], interval_s: float, threshold_percent: float) -> handle
PyObject* watch_machine(PyObject* module, PyObject* arguments);
/// risk_changes(handle) -> list[bytes]: changes of risk since the last call, each as JSON. Never waits.
PyObject* risk_changes(PyObject* module, PyObject* handle);
/// stop_watching(handle): the handle is of no use then. Waits for what a driver is doing.
PyObject* stop_watching(PyObject* module, PyObject* handle);

}  // namespace tidemark::python
