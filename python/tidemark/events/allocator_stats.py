"""The counters of PyTorch's CUDA allocator without the dictionary that ``torch.cuda.memory_allocated()`` builds.

``torch._C._cuda_memoryStats`` turns some 150 counters into nested dictionaries: ten microseconds and more for the four numbers
that an event needs. The allocator's own ``getDeviceStats`` copies them in one call. It is virtual and its slot in the table of
virtual functions differs between versions, but ``CUDAPluggableAllocator`` derives from the same class, and both its table and
its ``getDeviceStats`` are exported by libtorch_cuda: the slot found there is the slot in every allocator's table. The result is
verified: the numbers must equal those of the dictionary, with memory in use, before this method is used.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from typing import Any, Callable, NamedTuple


class Counters(NamedTuple):
    """Bytes of one device's allocator: allocated, reserved, and the peaks of both since they were reset."""

    allocated: int
    reserved: int
    max_allocated: int
    max_reserved: int


#: Device index -> its counters.
Reader = Callable[[int], Counters]

_VTABLE = "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE"
#: getDeviceStats(DeviceIndex); an index was an int before it became a signed char.
_STATS = tuple("_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator14getDeviceStatsE" + kind for kind in "ai")
_CURRENT = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
_TABLE_SEARCHED = 128
#: DeviceStats starts with arrays of three kinds of memory (all, small, large) of {current, peak, allocated, freed},
#: 8 bytes each: allocations, segments, active and inactive blocks, then bytes allocated and bytes reserved.
_ALLOCATED_AT, _RESERVED_AT = 4 * 12, 5 * 12
#: DeviceStats is about 1 KiB; room for versions to come.
_ROOM = 2048


class _Answers(threading.local):
    """Memory for the allocator's result, one per thread."""

    def __init__(self) -> None:
        self.room = (ctypes.c_int64 * _ROOM)()
        self.where = ctypes.addressof(self.room)


def counters_from_dictionary(torch: Any) -> Reader:
    """For every version: PyTorch's dictionary, read once for all four numbers."""
    read = torch._C._cuda_memoryStats

    def counters(device: int) -> Counters:
        stats = read(device)
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        return Counters(allocated["current"], reserved["current"], allocated["peak"], reserved["peak"])

    return counters


def _slot_of_device_stats(library: ctypes.CDLL) -> int | None:
    """The slot of ``getDeviceStats`` in an allocator's table of virtual functions."""
    table = (ctypes.c_void_p * _TABLE_SEARCHED).in_dll(library, _VTABLE)
    for name in _STATS:
        try:
            wanted = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        for place, function in enumerate(table):
            if function == wanted:
                return place - 2  # objects point past the offset to the top and the type_info
    return None


def counters_from_allocator() -> Reader | None:
    """A reader that calls the allocator itself, or None if its parts are not found (other platforms, PyTorch before 2.0).

    It may only be called for devices whose allocator has started: for others the allocator throws a C++ exception.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":  # the calling convention below
        return None
    try:
        loaded = os.RTLD_NOLOAD | os.RTLD_NOW  # PyTorch's own libraries if loaded, else none
        slot = _slot_of_device_stats(ctypes.CDLL("libtorch_cuda.so", mode=loaded))
        allocator = ctypes.c_void_p.in_dll(ctypes.CDLL("libc10_cuda.so", mode=loaded), _CURRENT).value
    except (OSError, ValueError):
        return None
    if slot is None or not allocator:
        return None
    table = ctypes.c_void_p.from_address(allocator).value or 0
    address = ctypes.c_void_p.from_address(table + 8 * slot).value or 0
    # A struct of this size is returned through a pointer that the caller passes first. PyDLL's kind of function keeps the GIL.
    call = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(address)
    answers = _Answers()

    def counters(device: int) -> Counters:
        answer = answers.room
        call(answers.where, allocator, device)
        return Counters(answer[_ALLOCATED_AT], answer[_RESERVED_AT], answer[_ALLOCATED_AT + 1], answer[_RESERVED_AT + 1])

    return counters
