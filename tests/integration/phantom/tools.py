"""Tools that use NVML, CUPTI and NVRTC: torch.profiler, NVML as nvidia-ml-py calls it, and a kernel that PyTorch compiles.

Prints their results as JSON.
"""

import ctypes
import json

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def text(call, *arguments):
    buffer = ctypes.create_string_buffer(96)
    assert call(*arguments, buffer, 96) == 0
    return buffer.value.decode()


model = nn.Linear(64, 64, device="cuda:1")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as profiled:
    model(torch.empty(8, 64, device="cuda:1")).sum().backward()

torch.special.bessel_j0(torch.empty(8, device="cuda:1"))

nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
count, handle, memory = ctypes.c_uint(), ctypes.c_void_p(), Memory()
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:02:00.0", ctypes.byref(handle)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
print(
    json.dumps(
        {
            "operations": sorted({event.key for event in profiled.key_averages()}),
            "device_bytes": sum(max(event.device_memory_usage, 0) for event in profiled.events()),
            "count": count.value,
            "name": text(nvml.nvmlDeviceGetName, handle),
            "uuid": text(nvml.nvmlDeviceGetUUID, handle),
            "torch_uuid": f"GPU-{torch.cuda.get_device_properties(1).uuid}",
            "memory": [memory.total, memory.free, memory.used],
            "mem_get_info": torch.cuda.mem_get_info(1),
            "missing_device": nvml.nvmlDeviceGetHandleByIndex_v2(2, ctypes.byref(handle)),
            "utilization": hasattr(nvml, "nvmlDeviceGetUtilizationRates"),
        }
    )
)
