"""CUDA C++ compiled at run time, by the NVRTC that PyTorch was built with, and launched by the driver.

PyTorch reaches both through a library of its own, libcaffe2_nvrtc, which all its CUDA builds have. Its Python function for this
(`torch.cuda._compile_kernel`, from 2.9) needs a CUDA toolkit's headers, which few machines have, and starts setuptools.

Functions raise OSError or AttributeError if a library or a function in it is missing, RuntimeError if a call fails. They may be
called from any thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def library_of(torch: Any) -> ctypes.CDLL:
    """NVRTC and the driver, from the library that PyTorch itself uses."""
    if torch.version.cuda is None:
        raise OSError("this PyTorch was not built for CUDA")
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"))


def compile_source(library: ctypes.CDLL, source: str, architecture: str) -> bytes:
    """Machine code for an architecture such as ``sm_90``."""
    program = ctypes.c_void_p()
    _check_nvrtc(library, library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), None, 0, None, None))
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        if library.nvrtcCompileProgram(program, len(options), options) != 0:
            raise RuntimeError(f"NVRTC, for {architecture}: {_log(library, program)}")
        size = ctypes.c_size_t()
        _check_nvrtc(library, library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        _check_nvrtc(library, library.nvrtcGetCUBIN(program, code))
        if not code.raw.startswith(b"\x7fELF"):  # from a phantom GPU
            raise RuntimeError("NVRTC gave no machine code")
        return code.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


class Kernel:
    """A function on the device that was current when it was loaded. It stays loaded until the process ends."""

    def __init__(self, library: ctypes.CDLL, module: ctypes.c_void_p, name: str) -> None:
        self._library = library
        self._function = ctypes.c_void_p()
        _check_driver(library, library.cuModuleGetFunction(ctypes.byref(self._function), module, name.encode()))

    def launch(self, blocks: int, threads: int, stream: int, *parameters: Any) -> None:
        """Launches it on a stream (its handle) of its device, which must be current; parameters are ctypes objects.

        They are copied: they need not outlive the call. Memory that they point to must outlive the kernel.
        """
        places = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(parameter) for parameter in parameters))
        sizes = (ctypes.c_uint(size) for size in (blocks, 1, 1, threads, 1, 1, 0))
        status = self._library.cuLaunchKernel(self._function, *sizes, ctypes.c_void_p(stream), places, None)
        _check_driver(self._library, status)


def load_kernels(library: ctypes.CDLL, code: bytes, names: Sequence[str]) -> list[Kernel]:
    """Functions of the machine code, on the current device; PyTorch must have used it in this thread."""
    module = ctypes.c_void_p()
    _check_driver(library, library.cuModuleLoadData(ctypes.byref(module), code))
    return [Kernel(library, module, name) for name in names]


def _log(library: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _check_nvrtc(library, library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check_nvrtc(library, library.nvrtcGetProgramLog(program, text))
    return text.value.decode(errors="replace").strip()


def _check_nvrtc(library: ctypes.CDLL, status: int) -> None:
    if status != 0:
        describe = library.nvrtcGetErrorString
        describe.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC: {(describe(status) or b'').decode(errors='replace')} ({status})")


def _check_driver(library: ctypes.CDLL, status: int) -> None:
    if status != 0:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"CUDA driver: {(text.value or b'').decode(errors='replace')} ({status})")
