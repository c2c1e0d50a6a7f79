"""Recurrent networks: "recurrent.py programs" trains some for three steps each, and prints the peaks of PyTorch's allocator;
"recurrent.py calls FILE" makes the calls of a file of ../../data/phantom, and prints the requests of each.
"""

import json
import sys
from pathlib import Path

import torch
from requested import requests_of
from torch import nn


def train(model, batch, autocast=None):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        with torch.autocast("cuda", dtype=autocast or torch.float16, enabled=autocast is not None):
            output = model(batch())[0]
            if isinstance(output, nn.utils.rnn.PackedSequence):
                output = output.data  # its indices are freed here
            loss = output.float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def batch_of(features, steps=35, sequences=24, dtype=torch.float32):
    return lambda: torch.randn(steps, sequences, features, device="cuda", dtype=dtype)


def packed_batch(lengths, features=64):
    padded = torch.randn(max(lengths), len(lengths), features)
    return lambda: nn.utils.rnn.pack_padded_sequence(padded.cuda(), torch.tensor(lengths), enforce_sorted=False)


def infer():
    lstm = nn.LSTM(256, 512, 3, bidirectional=True).cuda().eval()
    with torch.no_grad():
        for steps in (20, 60, 40):
            lstm(batch_of(256, steps)())


# In the order of the measurement: PyTorch keeps cuBLAS's workspaces.
PROGRAMS = {
    "lstm_two_layers": lambda: train(nn.LSTM(64, 128, 2).cuda(), batch_of(64)),
    "lstm_large": lambda: train(nn.LSTM(1024, 1024, 4, dropout=0.1).cuda(), batch_of(1024, 100, 64)),
    "gru_bidirectional": lambda: train(nn.GRU(100, 200, 3, dropout=0.2, bidirectional=True).cuda(), batch_of(100)),
    "rnn": lambda: train(nn.RNN(64, 300, 2).cuda(), batch_of(64)),
    "lstm_projected": lambda: train(nn.LSTM(128, 256, 2, proj_size=96, bidirectional=True).cuda(), batch_of(128)),
    "lstm_packed": lambda: train(nn.LSTM(64, 256, 2, bidirectional=True).cuda(), packed_batch([3, 40, 17, 25, 40, 1, 8])),
    "gru_packed": lambda: train(nn.GRU(64, 100, bidirectional=True).cuda(), packed_batch([60, 12, 33])),
    "lstm_half": lambda: train(nn.LSTM(256, 512).cuda().half(), batch_of(256, dtype=torch.float16)),
    "lstm_double": lambda: train(nn.LSTM(64, 96, 2).cuda().double(), batch_of(64, dtype=torch.float64)),
    "lstm_bfloat16": lambda: train(nn.LSTM(128, 256, 2).cuda(), batch_of(128), torch.bfloat16),
    "gru_float16": lambda: train(nn.GRU(128, 256, 2, bidirectional=True).cuda(), batch_of(128), torch.float16),
    "lstm_inference": infer,
}


def peaks():
    found = {}
    for name, program in PROGRAMS.items():
        torch.manual_seed(1)
        program()
        found[name] = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return found


def call(module, layers, inputs, hidden, steps, sequences, **others):
    dtype = getattr(torch, others["type"])

    def make_and_call():
        model = getattr(nn, module)(inputs, hidden, layers, device="cuda", dtype=dtype)
        model(batch_of(inputs, steps, sequences, dtype)())

    return requests_of(make_and_call)


def main():
    if sys.argv[1] == "programs":
        found = peaks()
    else:
        found = [call(**known) for known in json.loads(Path(sys.argv[2]).read_text())["calls"]]
    print(json.dumps(found), file=sys.stderr)


if __name__ == "__main__":
    main()
