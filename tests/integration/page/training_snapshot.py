"""A PyTorch memory snapshot of a training that never ran: eight layers, six steps, out of memory in the last one. Small, always
the same, and with everything that a page draws: code of the project and of libraries, segments that look alike, a failure.
"""
import pickle

MIB = 1 << 20
LAYERS, STEPS = 8, 6
START_US = 1_795_000_000_000_000
SITE = "/venv/lib/python3.11/site-packages/"


def frame(name, filename, line):
    return {"name": name, "filename": filename, "line": line}


MAIN = frame("main", "/home/user/project/train.py", 88)
STEP = frame("train_step", "/home/user/project/train.py", 41)
FORWARD = frame("Transformer.forward", "/home/user/project/model.py", 64)
CALL = frame("Module._call_impl", SITE + "torch/nn/modules/module.py", 1790)
ATTENTION = frame("Attention.forward", "/home/user/project/model.py", 23)
MLP = frame("Mlp.forward", "/home/user/project/model.py", 37)
LINEAR = frame("Linear.forward", SITE + "torch/nn/modules/linear.py", 134)
SOFTMAX = frame("softmax", SITE + "torch/nn/functional.py", 2140)
LOSS = frame("next_token_loss", "/home/user/project/loss.py", 9)
ENTROPY = frame("cross_entropy", SITE + "torch/nn/functional.py", 3504)
BACKWARD = frame("Tensor.backward", SITE + "torch/_tensor.py", 648)
ENGINE = frame("_engine_run_backward", SITE + "torch/autograd/graph.py", 829)
ADAM = frame("AdamW.step", SITE + "torch/optim/adamw.py", 244)
COPY = frame("deepcopy", "/usr/lib/python3.11/copy.py", 153)
BUILD = frame("build", "/home/user/project/train.py", 19)

# Innermost first, in PyTorch's order.
WEIGHTS = [LINEAR, COPY, BUILD, MAIN]
SCORES = [SOFTMAX, ATTENTION, CALL, FORWARD, CALL, STEP, MAIN]
PROJECTION = [LINEAR, CALL, ATTENTION, CALL, FORWARD, CALL, STEP, MAIN]
HIDDEN = [LINEAR, CALL, MLP, CALL, FORWARD, CALL, STEP, MAIN]
LOGITS = [ENTROPY, LOSS, STEP, MAIN]
GRADIENTS = [ENGINE, BACKWARD, STEP, MAIN]
STATES = [ADAM, STEP, MAIN]


class Allocator:
    """Blocks of more than 10 MiB have segments of their own; three of 6 MiB share one of 20 MiB. Segments are kept."""

    def __init__(self):
        self.entries, self.free_places, self.live, self.segments, self.time_us = [], {}, {}, {}, START_US

    def add(self, action, address, size, frames):
        key = "device_free" if action == "oom" else "addr"
        self.entries.append({"action": action, key: address, "size": size, "stream": 0, "time_us": self.time_us,
                             "frames": frames})
        self.time_us += 900

    def allocate(self, mib, frames):
        places = self.free_places.setdefault(mib, [])
        if not places:
            base = 0x7F00_0000_0000 + len(self.segments) * 512 * MIB
            segment_mib = mib if mib > 10 else 20
            self.segments[base] = segment_mib
            self.add("segment_alloc", base, segment_mib * MIB, frames)
            places += [base + offset * MIB for offset in (range(0, 18, mib) if mib <= 10 else [0])]
        address = places.pop(0)
        self.live[address] = (mib, frames)
        self.add("alloc", address, mib * MIB, frames)
        return address

    def free(self, address):
        mib, frames = self.live.pop(address)
        for action in ("free_requested", "free_completed"):
            self.add(action, address, mib * MIB, frames)
        self.free_places[mib] = sorted(self.free_places[mib] + [address])

    def final_state(self):
        segments = []
        for base, mib in self.segments.items():
            blocks, at = [], base
            for address in sorted(each for each in self.live if base <= each < base + mib * MIB):
                if address > at:
                    blocks.append(block(at, address - at, "inactive", []))
                held, frames = self.live[address]
                blocks.append(block(address, held * MIB, "active_allocated", frames))
                at = address + held * MIB
            if at < base + mib * MIB:
                blocks.append(block(at, base + mib * MIB - at, "inactive", []))
            held = sum(each["size"] for each in blocks if each["state"] != "inactive")
            segments.append({"device": 0, "address": base, "total_size": mib * MIB, "allocated_size": held, "active_size": held,
                             "requested_size": held, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                             "is_expandable": False, "frames": [], "blocks": blocks})
        return segments


def block(address, size, state, frames):
    requested = 0 if state == "inactive" else size
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames}


def write(path):
    allocator = Allocator()
    for _ in range(LAYERS):
        allocator.allocate(20, WEIGHTS)
    for step in range(STEPS):
        kept = []
        for _ in range(LAYERS):
            kept += [allocator.allocate(6, SCORES), allocator.allocate(6, PROJECTION), allocator.allocate(32, HIDDEN)]
        logits = allocator.allocate(96, LOGITS)
        if step == STEPS - 1:
            allocator.add("oom", 48 * MIB, 384 * MIB, LOGITS)
            break
        gradients = []
        for layer in range(LAYERS):
            gradients.append(allocator.allocate(20, GRADIENTS))
            for address in kept[3 * (LAYERS - layer - 1):3 * (LAYERS - layer)]:
                allocator.free(address)
        allocator.free(logits)
        if step == 0:
            for _ in range(2 * LAYERS):
                allocator.allocate(20, STATES)
        for address in gradients:
            allocator.free(address)
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                "expandable_segments": False, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
                "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {str(1 << n): 0 for n in range(16)}}
    with open(path, "wb") as file:
        pickle.dump({"segments": allocator.final_state(), "device_traces": [allocator.entries], "allocator_settings": settings},
                    file, protocol=4)
