#!/usr/bin/env python3
"""Makes small.pickle: a snapshot that is small enough to check by hand, with what real ones have.

Two devices and two streams. Device 0: a 20 MiB segment, of which blocks of 4, 8 and 6 MiB (rounded up by 512 bytes where that
is not what was asked for) are used at most, one of them given back but still used by stream 7; a 2 MiB segment for
small blocks; a request that fails. Device 1: an expandable segment in a private pool.

Peaks: device 0 allocated 18 MiB + 1024 B, reserved 22 MiB; device 1 allocated 3 MiB, reserved 20 MiB.
"""
import os
import pickle

KIB, MIB = 1 << 10, 1 << 20
LARGE, SMALL, EXPANDABLE = 0x7F00_0000_0000, 0x7F00_0200_0000, 0x7E00_0000_0000
START_US = 1_795_000_000_000_000

MAIN = {"name": "<module>", "filename": "train.py", "line": 30}
FORWARD = {"name": "forward", "filename": "model.py", "line": 12}
LINEAR = {"name": "forward", "filename": "site-packages/torch/nn/modules/linear.py", "line": 134}
NATIVE = {"name": "at::native::empty_cuda(c10::ArrayRef<long>)", "filename": "??", "line": 0}
WEIGHTS = [MAIN]  # innermost first
ACTIVATIONS = [NATIVE, LINEAR, FORWARD, MAIN]


class Trace:
    def __init__(self):
        self.entries = []

    def add(self, action, addr, size, frames, stream=0, user_metadata="", compile_context="N/A"):
        key = "device_free" if action == "oom" else "addr"
        self.entries.append({
            "action": action, key: addr, "size": size, "stream": stream,
            "time_us": START_US + 100 * len(self.entries), "compile_context": compile_context,
            "user_metadata": user_metadata, "frames": frames})

    def free(self, addr, size, frames, stream=0):
        self.add("free_requested", addr, size, frames, stream)
        self.add("free_completed", addr, size, frames, stream)


def device_0():
    trace = Trace()
    trace.add("segment_alloc", LARGE, 20 * MIB, WEIGHTS)
    trace.add("alloc", LARGE, 4 * MIB, WEIGHTS)
    trace.add("alloc", LARGE + 4 * MIB, 8 * MIB - 100, ACTIVATIONS, user_metadata="step 0")
    trace.add("alloc", LARGE + 12 * MIB, 6 * MIB, ACTIVATIONS, stream=0, compile_context="0/0")
    trace.add("segment_alloc", SMALL, 2 * MIB, ACTIVATIONS)
    trace.add("alloc", SMALL, 1000, ACTIVATIONS)
    trace.add("oom", 3 * MIB, 40 * MIB, ACTIVATIONS)
    trace.free(SMALL, 1000, WEIGHTS)
    trace.free(LARGE + 12 * MIB, 6 * MIB, ACTIVATIONS)
    trace.add("free_requested", LARGE + 4 * MIB, 8 * MIB - 100, ACTIVATIONS)  # stream 7 still uses it
    trace.add("segment_free", SMALL, 2 * MIB, WEIGHTS)
    return trace.entries


def device_1():
    trace = Trace()
    trace.add("segment_map", EXPANDABLE, 20 * MIB, WEIGHTS, stream=7)
    trace.add("alloc", EXPANDABLE, 3 * MIB, WEIGHTS, stream=7)
    return trace.entries


def block(address, size, requested, state, frames):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames}


def segment(device, address, size, blocks, **more):
    used = [each for each in blocks if each["state"] == "active_allocated"]
    active = [each for each in blocks if each["state"] != "inactive"]
    return {"device": device, "address": address, "total_size": size, "allocated_size": sum(b["size"] for b in used),
            "active_size": sum(b["size"] for b in active), "requested_size": sum(b["requested_size"] for b in active),
            "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": WEIGHTS,
            "blocks": blocks, **more}


def snapshot():
    segments = [
        segment(0, LARGE, 20 * MIB, [
            block(LARGE, 4 * MIB, 4 * MIB, "active_allocated", WEIGHTS),
            block(LARGE + 4 * MIB, 8 * MIB, 8 * MIB - 100, "active_pending_free", ACTIVATIONS),
            block(LARGE + 12 * MIB, 8 * MIB, 0, "inactive", [])]),
        segment(1, EXPANDABLE, 20 * MIB, [
            block(EXPANDABLE, 3 * MIB, 3 * MIB, "active_allocated", WEIGHTS),
            block(EXPANDABLE + 3 * MIB, 17 * MIB, 0, "inactive", [])],
            stream=7, segment_pool_id=(0, 1), is_expandable=True)]
    annotations = [{"stage": stage, "name": "step 0", "device": 0, "time_us": START_US + at}
                   for stage, at in (("START", 150), ("END", 1050))]
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "max_split_size": 64 * MIB,
        "garbage_collection_threshold": 0.5, "expandable_segments": False, "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False,
        "roundup_power2_divisions": {str(1 << n): 0 for n in range(16)}}
    return {"segments": segments, "device_traces": [device_0(), device_1(), []], "allocator_settings": settings,
            "external_annotations": annotations}


if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "small.pickle"), "wb") as file:
        pickle.dump(snapshot(), file, protocol=4)
