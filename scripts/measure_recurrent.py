#!/usr/bin/env python3
"""Asks cuDNN on a GPU for the sizes of recurrent networks, with networks and batches drawn at random; nothing is computed.

Prints a line of JSON for each, with the columns of tests/data/phantom/recurrent_spaces.txt; for every sixtieth, the places of
the weights follow. Networks that cuDNN does not support are left out. The numbers depend on the seed only.

    scripts/measure_recurrent.py 1 --calls 9000 > recurrent.1
"""

import argparse
import ctypes
import json
import random
from ctypes import byref, c_float, c_int, c_size_t, c_ulonglong, c_void_p
from pathlib import Path

import torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("seed", type=int)
parser.add_argument("--calls", type=int, default=9000)
options = parser.parse_args()

rng = random.Random(options.seed)
torch.nn.LSTM(8, 8).cuda()(torch.zeros(2, 2, 8).cuda())
maps = Path("/proc/self/maps").read_text().splitlines()
cudnn = ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudnn.so" in line))

# cudnnDataType_t, cudnnRNNAlgo_t, cudnnRNNMode_t
FLOAT32, FLOAT64, FLOAT16, BFLOAT16 = 0, 1, 2, 9
STANDARD, PERSISTENT, SMALL = 0, 1, 3
LSTM, GRU = 2, 3
DEFAULT_MATH, TENSOR_MATH, WITHOUT_TF32 = 0, 1, 3
FAKE_ADDRESS = 1 << 40
SMALL_HIDDEN = 384


def create(name):
    made = c_void_p()
    assert getattr(cudnn, f"cudnnCreate{name}")(byref(made)) == 0
    return made


handle = create("")
network, batch, tensor = create("RNNDescriptor"), create("RNNDataDescriptor"), create("TensorDescriptor")
state_bytes = c_size_t()
assert cudnn.cudnnDropoutGetStatesSize(handle, byref(state_bytes)) == 0
states = torch.zeros(state_bytes.value, dtype=torch.uint8, device="cuda")
dropouts = [create("DropoutDescriptor"), create("DropoutDescriptor")]
cudnn.cudnnSetDropoutDescriptor(dropouts[0], handle, c_float(0), c_void_p(), c_size_t(0), c_ulonglong(1))
cudnn.cudnnSetDropoutDescriptor(dropouts[1], handle, c_float(0.5), c_void_p(states.data_ptr()), state_bytes, c_ulonglong(1))


def features():
    return rng.choice([rng.randint(1, 64), 8 * rng.randint(1, 64), 64 * rng.randint(1, 32), 2 ** rng.randint(0, 11)])


DRAWS = {
    "cell": lambda: rng.choice([0, 1, LSTM, LSTM, LSTM, GRU, GRU]),
    "bidirectional": lambda: rng.randint(0, 1),
    "type": lambda: rng.choice([FLOAT32, FLOAT32, FLOAT16, BFLOAT16, FLOAT64]),
    "math": lambda: rng.choice([DEFAULT_MATH, DEFAULT_MATH, WITHOUT_TF32, TENSOR_MATH]),
    "inputs": features,
    "hidden": features,
    "projected": lambda: rng.choice([False, False, True]),
    "layers": lambda: rng.choice([1, 1, 2, 3, 4, 6]),
    "dropout": lambda: rng.randint(0, 1),
    "packed": lambda: rng.choice([0, 0, 1]),
    "steps": lambda: rng.choice([1, 2, rng.randint(1, 50), rng.randint(1, 600)]),
    "sequences": lambda: rng.choice([1, rng.randint(1, 40), 8 * rng.randint(1, 20), rng.randint(1, 600)]),
    "algorithm": lambda: rng.choice([STANDARD, PERSISTENT, SMALL]),
    "share": rng.random,
}


def algorithm_of(draw, outputs):
    """As PyTorch chooses; the small one also for larger states."""
    if outputs != draw["hidden"] or draw["packed"] or draw["type"] == FLOAT64 or draw["algorithm"] == STANDARD:
        return STANDARD
    if draw["algorithm"] == SMALL:
        return SMALL if draw["hidden"] <= SMALL_HIDDEN else STANDARD
    wide = draw["hidden"] % 128 == draw["inputs"] % 128 == draw["sequences"] % 8 == 0 and draw["hidden"] <= 1024
    simple = draw["type"] == FLOAT16 and draw["layers"] == 1 and not draw["bidirectional"] and draw["cell"] != GRU
    return PERSISTENT if wide and simple and draw["sequences"] <= 128 else STANDARD


def lengths_of(draw):
    steps, sequences = draw["steps"], draw["sequences"]
    if not draw["packed"]:
        return [steps] * sequences
    return [steps] + [1 + int((steps - 1) * draw["share"] * at / sequences) for at in range(sequences, 1, -1)]


def places(draw, weight_bytes):
    found = []
    for layer in range(draw["layers"] * (1 + draw["bidirectional"])):
        for number in range(9):
            matrix, bias = c_void_p(), c_void_p()
            where = (tensor, byref(matrix), tensor, byref(bias))
            cudnn.cudnnGetRNNWeightParams(handle, network, layer, weight_bytes, c_void_p(FAKE_ADDRESS), number, *where)
            found += [-1 if address.value is None else address.value - FAKE_ADDRESS for address in (matrix, bias)]
    return found


def measure(draw):
    hidden, kind = draw["hidden"], draw["type"]
    outputs = hidden
    if draw["projected"] and draw["cell"] == LSTM and hidden > 1:
        outputs = 1 + int(draw["share"] * (hidden - 1))
    algorithm, lengths = algorithm_of(draw, outputs), lengths_of(draw)
    math = TENSOR_MATH if kind == FLOAT16 else draw["math"]
    compute = FLOAT64 if kind == FLOAT64 else FLOAT32
    shape = (draw["inputs"], hidden, outputs, draw["layers"])
    # Two biases, linear input; input and output without padding is packed.
    settings = (algorithm, draw["cell"], 2, draw["bidirectional"], 0, kind, compute, math)
    answers = [cudnn.cudnnSetRNNDescriptor_v8(network, *settings, *shape, dropouts[draw["dropout"]], 1 - draw["packed"])]
    sizes = (draw["steps"], draw["sequences"], draw["inputs"], (c_int * len(lengths))(*lengths), None)
    answers.append(cudnn.cudnnSetRNNDataDescriptor(batch, kind, draw["packed"], *sizes))
    weights, training, reserve, inference = c_size_t(), c_size_t(), c_size_t(), c_size_t()
    answers.append(cudnn.cudnnGetRNNWeightSpaceSize(handle, network, byref(weights)))
    answers.append(cudnn.cudnnGetRNNTempSpaceSizes(handle, network, 1, batch, byref(training), byref(reserve)))
    answers.append(cudnn.cudnnGetRNNTempSpaceSizes(handle, network, 0, batch, byref(inference), None))
    if any(answers):
        return None
    described = [algorithm, draw["cell"], draw["bidirectional"], kind, *shape, draw["dropout"], 1 - draw["packed"]]
    sequences = [draw["steps"], draw["sequences"], sum(lengths)]
    return [*described, *sequences, weights.value, training.value, reserve.value, inference.value]


def main():
    draw = {}
    for call in range(options.calls):
        # Most calls differ from the one before in one number.
        for name in DRAWS if call % 8 == 0 else [rng.choice(list(DRAWS))]:
            draw[name] = DRAWS[name]()
        numbers = measure(draw)
        if numbers is None:
            continue
        print(json.dumps(numbers + (places(draw, c_size_t(numbers[13])) if call % 60 == 0 else [])))


if __name__ == "__main__":
    main()
