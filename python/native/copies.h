// Copies to a device for python/tidemark/loading, as functions of tidemark._engine.
#pragma once

#include <Python.h>

namespace tidemark::python {

/// host_to_device(device: int, chunk_bytes: int, chunks: int, threads: int) -> handle. 0 threads: the value of
/// filling_threads().
PyObject* host_to_device(PyObject* module, PyObject* arguments);
/// copy_to_device(handle, [(from: int, to: int, bytes: int, pinned: bool)]): addresses; starts the copies on the
/// stream.
PyObject* copy_to_device(PyObject* module, PyObject* arguments);
/// convert_on_device(handle, from_type: str, to_type: str, scale: float, offset: float, from: int, to: int, bytes:
/// int): addresses on the device; starts the conversion on the stream. It uses the C++ loader's kernels and keeps them:
/// for scripts/gpu_conversions.py, which compares them with PyTorch's.
PyObject* convert_on_device(PyObject* module, PyObject* arguments);
/// copy_stream(handle) -> int: the CUstream
PyObject* copy_stream(PyObject* module, PyObject* handle);
/// pinned_bytes(handle) -> int
PyObject* pinned_bytes(PyObject* module, PyObject* handle);

}  // namespace tidemark::python
