#!/usr/bin/env python3
"""Compares plans with the memory snapshots of a real GPU in DATA/snapshots: every event of PyTorch's allocator, in order.

The programs behind the snapshots were not kept. The ones below were reconstructed from the snapshots: the frames of their
allocations give the order of the calls, the sizes give the models, and the shapes of the inputs are read from each snapshot. They run
with `tidemark plan --gpu H200 --steps 0` and an interpreter that has the snapshots' versions (torch 2.11.0, transformers 5.17.0; `scripts/setup.sh
--torch-truth` installs them). Prints a line for each; exit code 1 if one
differs or could not be planned.

    scripts/plan_snapshots.py
    scripts/plan_snapshots.py healthy oom --tidemark build/release/bin/tidemark
"""

import argparse
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("TIDEMARK_CACHE", Path.home() / ".cache" / "tidemark"))
# name: (program, PYTORCH_CUDA_ALLOC_CONF). WITH_STACKS: which snapshot of a program has the Python frames of its allocations.
WITH_STACKS = {"healthy": "healthy", "varlen": "varlen", "lora": "lora_python_stacks", "oom": "oom"}
SNAPSHOTS = {
    "healthy": ("healthy", ""),
    "varlen": ("varlen", ""),
    "varlen_expandable": ("varlen", "expandable_segments:True"),
    "varlen_max_split_64": ("varlen", "max_split_size_mb:64"),
    "lora_python_stacks": ("lora", ""),
    "lora_native_stacks": ("lora", ""),
    "oom": ("oom", ""),
}
COMPARED = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom")
INT64 = 8


def read_snapshot(path):
    """For files of this project only: pickle runs code of its files."""
    with lzma.open(path) as file:
        return pickle.load(file)["device_traces"][0]


def events(trace):
    return [(event["action"], event["size"]) for event in trace if event["action"] in COMPARED]


def input_shapes(trace):
    """(batch, length) of each step: the allocation made by the program itself, and the next one, of the positions."""
    sizes = [(event["size"], [frame["filename"] for frame in event["frames"]]) for event in trace if event["action"] == "alloc"]
    shapes = []
    for index, (size, files) in enumerate(sizes):
        if files and files[0] in ("work.py", "train.py"):
            length = sizes[index + 2][0] // INT64
            shapes.append((size // INT64 // length, length))
    return shapes


def train(name, shapes, output):
    """Runs in the planned process."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.cuda.memory._record_memory_history(max_entries=10_000_000, context=None)
    if name == "oom":
        torch.cuda.set_per_process_memory_fraction(0.03)
    hidden, layers = {"healthy": (512, 2), "varlen": (512, 6), "oom": (512, 6), "lora": (1024, 12)}[name]
    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=hidden * 11 // 4, num_hidden_layers=layers, num_attention_heads=hidden // 64, vocab_size=32000)
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
    if name == "lora":
        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-4)

    def step(batch, length):
        ids = torch.randint(0, 32000, (batch, length), device="cuda")
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    try:
        # As the frames show, and the events confirm: the LoRA program's loop is not in a function, so the tensors of a step live until the next one
        # replaces them.
        if name == "lora":
            for batch, length in shapes:
                ids = torch.randint(0, 32000, (batch, length), device="cuda")
                loss = model(input_ids=ids, labels=ids).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        else:
            for batch, length in shapes:
                step(batch, length)
    except torch.cuda.OutOfMemoryError as error:
        print(error, file=sys.stderr)
    trace = events(torch.cuda.memory._snapshot()["device_traces"][0])
    Path(output).write_text(json.dumps(trace))


def compare(args, folder, name):
    program, settings = SNAPSHOTS[name]
    trace = read_snapshot(args.data / f"{name}.pickle.xz")
    with_stacks = WITH_STACKS[program]
    shapes = json.dumps(input_shapes(trace if name == with_stacks else read_snapshot(args.data / f"{with_stacks}.pickle.xz")))
    output = folder / f"{name}.json"
    command = [args.tidemark, "plan", "--gpu", "H200", "--steps", "0", "-f", "-o", folder / "plan.tide", "--format", "json", "--",
               args.python, __file__, "--train", program, shapes, output]  # fmt: skip
    done = subprocess.run(command, env=os.environ | {"PYTORCH_CUDA_ALLOC_CONF": settings}, capture_output=True, text=True, check=False)
    if not output.exists():
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    planned, real = [tuple(event) for event in json.loads(output.read_text())], events(trace)
    first = next((index for index, pair in enumerate(zip(planned, real)) if pair[0] != pair[1]), None)
    if first is None and len(planned) != len(real):
        first = min(len(planned), len(real))
    return planned, real, first


def main():
    if sys.argv[1:2] == ["--train"]:
        train(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="snapshots (default: all)", default=list(SNAPSHOTS))
    parser.add_argument("--tidemark", default=ROOT / "build/release/bin/tidemark", type=Path)
    parser.add_argument("--python", default=CACHE / "torch-2.11.0/bin/python", type=Path)
    parser.add_argument("--data", default=ROOT.parent / "shared/data/snapshots", type=Path)
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names:
            try:
                planned, real, first = compare(args, Path(folder), name)
            except RuntimeError as error:
                print(f"{name:20}  not planned: {error}")
                failed = True
                continue
            if first is None:
                print(f"{name:20}  {len(real):,} events, all equal")
            else:
                failed = True
                shown = [trace[first] if first < len(trace) else None for trace in (planned, real)]
                print(f"{name:20}  {len(planned):,} events planned, {len(real):,} real; the first difference is at {first:,}: {shown[0]}, {shown[1]} real")
    return failed


if __name__ == "__main__":
    sys.exit(main())
