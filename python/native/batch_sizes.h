// The search for a batch size that fits, for python/tidemark, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// batch_search(start: int, maximum: int | None, multiple_of: int, margin: float, probes: int) -> handle. ValueError
/// where they are none.
PyObject* batch_search(PyObject* module, PyObject* arguments);
/// next_batch(handle) -> int | None: the size to try; None when the search has ended.
PyObject* next_batch(PyObject* module, PyObject* handle);
/// report_batch(handle, size, fits, peak: bytes | None, limit: bytes | None): what came of it.
PyObject* report_batch(PyObject* module, PyObject* arguments);
/// suppose_batch(handle, size, fits, peak: bytes | None): of a size that another search knows, and this one did not
/// try.
PyObject* suppose_batch(PyObject* module, PyObject* arguments);
/// batch_result(handle) -> (end, batch_size, does_not_fit, slope, intercept): what is not known is None; `end` is
/// "searching", "found", "maximum", "nothing_fits" or "probes".
PyObject* batch_result(PyObject* module, PyObject* handle);

}  // namespace tidemark::python
