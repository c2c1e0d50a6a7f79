// The search for a batch size that fits, for python/tidemark, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// batch_search(start: int, maximum: int | None, multiple_of: int, margin: float, probes: int) -> handle. ValueError
/// for invalid arguments.
PyObject* batch_search(PyObject* module, PyObject* arguments);
/// next_batch(handle) -> int | None: the size to try; None if the search has ended.
PyObject* next_batch(PyObject* module, PyObject* handle);
/// report_batch(handle, size, fits, peak: bytes | None, limit: bytes | None): the result of a try.
PyObject* report_batch(PyObject* module, PyObject* arguments);
/// suppose_batch(handle, size, fits, peak: bytes | None): the result of a size from another search, not tried here.
PyObject* suppose_batch(PyObject* module, PyObject* arguments);
/// batch_result(handle) -> (end, batch_size, does_not_fit, slope, intercept): unknown values are None; `end` is
/// "searching", "found", "maximum", "nothing_fits" or "probes".
PyObject* batch_result(PyObject* module, PyObject* handle);

}  // namespace tidemark::python
