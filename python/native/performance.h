// The performance monitor for python/tidemark/performance.py, as functions of tidemark._engine. Logging functions
// return False if the value is not kept.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// performance_monitor(devices: list[bytes], interval_s: float, disk: bytes) -> handle
PyObject* performance_monitor(PyObject* module, PyObject* arguments);
PyObject* start_performance(PyObject* module, PyObject* handle);
PyObject* stop_performance(PyObject* module, PyObject* handle);
PyObject* is_performance_watched(PyObject* module, PyObject* handle);
/// log_metric(handle, name: str, value) -> bool; `value` is a number, or has __float__.
PyObject* log_metric(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
/// end_step(handle, samples: int) -> bool
PyObject* end_step(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
/// begin_part(handle) -> int: the time, for end_part(handle, part: int, began: int) -> bool
PyObject* begin_part(PyObject* module, PyObject* handle);
PyObject* end_part(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
/// performance_report(handle) -> bytes: JSON
PyObject* performance_report(PyObject* module, PyObject* handle);
/// performance_page(handle, version: str) -> bytes: for Prometheus
PyObject* performance_page(PyObject* module, PyObject* arguments);
/// performance_chart(handle, svg: bool) -> bytes
PyObject* performance_chart(PyObject* module, PyObject* arguments);

}  // namespace tidemark::python
