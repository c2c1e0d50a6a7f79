"""Driver calls that `tidemark run --driver on` records, some of which fail. scripts/gpu_check.py compares the recording with
the last line on stdout, JSON: the changes of cuda-driver:0's memory, in bytes, and the driver's results of the other calls."""

import contextlib
import ctypes
import json
import sys

with contextlib.suppress(ImportError):
    import torch  # noqa: F401: it brings CUPTI

MIB = 1 << 20
RESERVED_NOW = 5  # CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
FLOAT, HALF, UINT8 = 0x20, 0x10, 0x01  # CUarray_format
LAYERED, SPARSE = 0x01, 0x40  # CUDA_ARRAY3D_...

cuda = ctypes.CDLL("libcuda.so.1")
changes = []  # of the device's memory
refusals = {}  # calls that must fail: CUresult
arrays = []


class Description(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("width", "height", "depth")] + [
        ("format", ctypes.c_int), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)]


class FlatDescription(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("format", ctypes.c_int), ("channels", ctypes.c_uint)]


class PoolProperties(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("type", "handle_types", "location", "device")] + [("rest", ctypes.c_char * 72)]


def check(result):
    if result != 0:
        sys.exit(f"CUresult {result}")


def allocate(size):
    address = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
    changes.append(size)
    return address


def free(address, size):
    check(cuda.cuMemFree_v2(address))
    changes.append(-size)


def free_memory():
    free_bytes, total = ctypes.c_size_t(), ctypes.c_size_t()
    if hasattr(cuda, "cuMemGetInfo_v2"):
        check(cuda.cuMemGetInfo_v2(ctypes.byref(free_bytes), ctypes.byref(total)))
    return free_bytes.value


def use_array(name, size, create, destroy):
    """Creates and destroys one whose elements have `size` bytes; 0: it has no memory of its own."""
    handle, before = ctypes.c_void_p(), free_memory()
    check(create(ctypes.byref(handle)))
    arrays.append({"array": name, "bytes_of_elements": size, "taken_from_device": before - free_memory()})
    check(destroy(handle))
    changes.extend([size, -size] if size else [])


def use_arrays():
    flat = FlatDescription(4096, 4096, FLOAT, 4)
    use_array("2D", 4096 * 4096 * 16, lambda out: cuda.cuArrayCreate_v2(out, ctypes.byref(flat)), cuda.cuArrayDestroy)
    for name, size, description in (
        ("3D", 256**3 * 2, Description(256, 256, 256, HALF, 1, 0)),
        ("layered", 1024 * 1024 * 8 * 4, Description(1024, 1024, 8, UINT8, 4, LAYERED)),
        ("sparse", 0, Description(4096, 4096, 0, FLOAT, 4, SPARSE)),
    ):
        use_array(name, size, lambda out, of=description: cuda.cuArray3DCreate_v2(out, ctypes.byref(of)), cuda.cuArrayDestroy)
    pyramid = Description(4096, 4096, 0, FLOAT, 1, 0)
    size = sum((4096 >> level) ** 2 * 4 for level in range(13))
    create = lambda out: cuda.cuMipmappedArrayCreate(out, ctypes.byref(pyramid), 20)  # of 13 possible levels
    use_array("mipmapped", size, create, cuda.cuMipmappedArrayDestroy)


def reserved(pool):
    value = ctypes.c_uint64()
    check(cuda.cuMemPoolGetAttribute(pool, RESERVED_NOW, ctypes.byref(value)))
    return value.value


def use_pools():
    default, pool, block = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    check(cuda.cuDeviceGetMemPool(ctypes.byref(default), 0))
    check(cuda.cuMemAllocAsync(ctypes.byref(block), ctypes.c_size_t(MIB), None))
    changes.append(reserved(default))
    refusals["cuMemPoolDestroy of the device's pool"] = cuda.cuMemPoolDestroy(default)
    check(cuda.cuMemFreeAsync(block, None))
    check(cuda.cuStreamSynchronize(None))
    changes.append(reserved(default) - changes[-1])
    properties = PoolProperties(type=1, location=1, device=0)
    check(cuda.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(properties)))
    check(cuda.cuMemAllocFromPoolAsync(ctypes.byref(block), ctypes.c_size_t(10 * MIB), pool, None))
    changes.append(reserved(pool))
    check(cuda.cuMemFreeAsync(block, None))
    check(cuda.cuMemPoolDestroy(pool))
    changes.append(-changes[-1])


def loaded(name):
    """The library of this process, None if it is not loaded."""
    with open("/proc/self/maps") as maps:
        path = next((line.split()[-1] for line in maps if f"/{name}.so" in line), None)
    return path and ctypes.CDLL(path)


def use_array_of_runtime():
    """The runtime's arrays are the driver's."""
    runtime = loaded("libcudart")
    if runtime is None:
        return
    float_channel = (ctypes.c_int * 5)(32, 0, 0, 0, 2)  # cudaChannelFormatDesc
    create = lambda out: runtime.cudaMallocArray(out, float_channel, ctypes.c_size_t(512), ctypes.c_size_t(512), 0)
    use_array("2D, by the runtime", 512 * 512 * 4, create, runtime.cudaFreeArray)


def subscribe_by_handle():
    """Subscribes like a tool that opens CUPTI; None if it is not loaded."""
    cupti = loaded("libcupti")
    subscriber, nothing = ctypes.c_void_p(), ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p)
    return cupti and cupti.cuptiSubscribe(ctypes.byref(subscriber), nothing, None)


def main():
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    own = ctypes.create_string_buffer(4096)
    first, held = allocate(MIB), allocate(2 * MIB)
    free(first, MIB)
    refusals["cuMemFree, a second time"] = cuda.cuMemFree_v2(first)
    refusals["cuMemFree inside a block"] = cuda.cuMemFree_v2(ctypes.c_uint64(held.value + 512))
    refusals["cuMemFreeHost of other memory"] = cuda.cuMemFreeHost(own)
    refusals["cuMemHostUnregister of other memory"] = cuda.cuMemHostUnregister(own)
    use_arrays()
    use_pools()
    use_array_of_runtime()
    check(cuda.cuDevicePrimaryCtxReset_v2(0))
    changes.append(-2 * MIB)
    print(json.dumps({"changes": changes, "refusals": refusals, "arrays": arrays, "subscribed_by_handle": subscribe_by_handle()}))


if __name__ == "__main__":
    main()
