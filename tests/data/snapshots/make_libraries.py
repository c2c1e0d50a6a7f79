#!/usr/bin/env python3
"""Makes libraries.pickle: a snapshot with the frames that PyTorch 2.15 writes by default (stacks="all").

C++ frames have a library as their file and an offset in it as their line; a frame of code that torch.fx generated has what
augment_with_fx_traces adds. One device, a segment of 20 MiB, three blocks: 8 MiB by train (train.py:9), 6 MiB by the autograd
node AddmmBackward0, 4 MiB by a generated line that was made from forward (train.py:4). Sixteen steps later the program has
kept 16 blocks of 64 KiB by train (train.py:11) in a small segment each step.
"""
import os
import pickle

KIB, MIB = 1 << 10, 1 << 20
LARGE, SMALL = 0x7F00_0000_0000, 0x7F00_0200_0000
START_US = 1_795_000_000_000_000
TORCH = "/venv/lib/python3.11/site-packages/torch/"


def frame(name, filename, line, **more):
    return {"name": name, "filename": filename, "line": line, **more}


def library(name, file, offset):
    return frame(name, f"{TORCH}lib/{file}", offset)


CAPTURE = [library("torch::unwind::unwind()", "libtorch_cpu.so", 108146796),
           library("torch::CapturedTraceback::gather(bool, bool, bool)", "libtorch_cpu.so", 107817241),
           library("??", "libtorch_cuda.so", 68989582), library("??", "libc10_cuda.so", 333005)]  # fmt: skip
EVALUATE = frame("_PyEval_EvalFrameDefault", "/usr/bin/python3.11", 5421535)
START = frame("__libc_start_main", "/lib/x86_64-linux-gnu/libc.so.6", 160516)
MODULE = frame("<module>", "/home/me/train.py", 15)


def python(line, kernel="at::_ops::randn::call(c10::ArrayRef<c10::SymInt>)"):
    return [*CAPTURE, library(kernel, "libtorch_cpu.so", 41562205), frame("??", "/usr/bin/python3.11", 5536661),
            frame("train", "/home/me/train.py", line), EVALUATE, MODULE, START]  # fmt: skip


NODE = [*CAPTURE, library("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "libtorch_cpu.so", 43262157),
        library("torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)",
                "libtorch_cpu.so", 84006240),
        library("torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)",
                "libtorch_cpu.so", 98695986), frame("??", "/lib/x86_64-linux-gnu/libc.so.6", 561652)]  # fmt: skip
TRACE = '  File "/home/me/train.py", line 4, in forward\n    return torch.relu(self.a(x))\n           ^^^^^\n'
GENERATED = [*CAPTURE,
             frame("forward", "fx_generated__oegwuo7c4spj.py", 18, fx_node_op="call_function", fx_node_name="relu",
                   fx_node_target="aten.relu.default", fx_original_trace=TRACE),
             EVALUATE, frame("train", "/home/me/train.py", 10), MODULE, START]  # fmt: skip


class Trace:
    def __init__(self):
        self.entries = []

    def add(self, action, addr, size, frames):
        self.entries.append({
            "action": action, "addr": addr, "size": size, "stream": 0, "time_us": START_US + 100 * len(self.entries),
            "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0), "frames": frames})  # fmt: skip


def segment(address, size, blocks):
    used = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
    return {"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
            "requested_size": used, "stream": 0, "segment_type": "large" if size > 2 * MIB else "small",
            "segment_pool_id": (0, 0), "is_expandable": False, "frames": python(9), "blocks": blocks}  # fmt: skip


def block(address, size, frames):
    state = "active_allocated" if frames else "inactive"
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames}


def main():
    trace = Trace()
    trace.add("segment_alloc", LARGE, 20 * MIB, python(9))
    trace.add("alloc", LARGE, 8 * MIB, python(9))
    trace.add("segment_alloc", SMALL, 2 * MIB, python(11))
    for step in range(16):
        trace.add("alloc", LARGE + 8 * MIB, 6 * MIB, NODE)
        trace.add("alloc", LARGE + 14 * MIB, 4 * MIB, GENERATED)
        trace.add("alloc", SMALL + step * 64 * KIB, 64 * KIB, python(11, "at::_ops::zeros::call()"))
        if step < 15:
            for address, size, frames in ((LARGE + 8 * MIB, 6 * MIB, NODE), (LARGE + 14 * MIB, 4 * MIB, GENERATED)):
                trace.add("free_requested", address, size, frames)
                trace.add("free_completed", address, size, frames)
    kept = [block(SMALL + step * 64 * KIB, 64 * KIB, python(11, "at::_ops::zeros::call()")) for step in range(16)]
    large = [block(LARGE, 8 * MIB, python(9)), block(LARGE + 8 * MIB, 6 * MIB, NODE),
             block(LARGE + 14 * MIB, 4 * MIB, GENERATED), block(LARGE + 18 * MIB, 2 * MIB, [])]  # fmt: skip
    snapshot = {
        "segments": [segment(LARGE, 20 * MIB, large), segment(SMALL, 2 * MIB, [*kept, block(SMALL + MIB, MIB, [])])],
        "device_traces": [trace.entries],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "throw_on_cudamalloc_oom": False},
        "external_annotations": [],
        "host_segments": [],
        "host_traces": [],
    }
    with open(os.path.join(os.path.dirname(__file__), "libraries.pickle"), "wb") as file:
        pickle.dump(snapshot, file, protocol=4)


main()
