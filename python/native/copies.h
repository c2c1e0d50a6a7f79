// Copies to a device for python/tidemark/loading, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// host_to_device(device: int, chunk_bytes: int, chunks: int, threads: int) -> handle. 0 threads: as many as
/// filling_threads() says.
PyObject* host_to_device(PyObject* module, PyObject* arguments);
/// copy_to_device(handle, [(from: int, to: int, bytes: int, pinned: bool)]): addresses; begins the copies on the
/// stream.
PyObject* copy_to_device(PyObject* module, PyObject* arguments);
/// convert_on_device(handle, from_type: str, to_type: str, scale: float, offset: float, from: int, to: int, bytes:
/// int): addresses on the device; begins the conversion on the stream. The C++ loader's, whose kernels it keeps: for
/// scripts/gpu_conversions.py, which compares them with PyTorch's.
PyObject* convert_on_device(PyObject* module, PyObject* arguments);
/// copy_stream(handle) -> int: the CUstream
PyObject* copy_stream(PyObject* module, PyObject* handle);
/// pinned_bytes(handle) -> int
PyObject* pinned_bytes(PyObject* module, PyObject* handle);

}  // namespace tidemark::python
