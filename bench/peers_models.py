"""Accelerate's estimates compared with analyze_model and `tidemark model`: a table, for bench/peers.py.

    PYTHONPATH=build/release/python python bench/peers_models.py build/release/bin/tidemark FOLDER

The truth: the bytes of the storages of a model's parameters and buffers, each storage once. FOLDER is for files of weights.
"""

import argparse
import json
import logging
import pathlib
import resource
import statistics
import subprocess
import time

import accelerate
import torch
import transformers
from accelerate.commands.estimate import estimate_training_usage
from accelerate.utils import calculate_maximum_sizes
from peers_table import table
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_model
from torch import nn
from workloads import WORKLOADS

import tidemark

HERE = pathlib.Path(__file__).resolve().parent
SEVEN_BILLION = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
}  # fmt: skip


def tied():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, n_embd=256, n_head=4))


def one_flat_storage():
    """Parameters that are views of one storage, as in fused optimizers, FSDP and cuDNN's LSTM; one part belongs to two."""
    model = nn.Sequential(nn.Linear(512, 512, bias=False), nn.Linear(512, 512, bias=False))
    flat = torch.zeros(512 * 512 + 512 * 256)
    model[0].weight = nn.Parameter(flat[: 512 * 512].view(512, 512))
    model[1].weight = nn.Parameter(flat[512 * 256 :].view(512, 512))
    return model


def expanded():
    """A mask of a row that is expanded to 1024 of them: a buffer with stride 0."""
    model = nn.Linear(256, 256)
    model.register_buffer("mask", torch.ones(1, 1024).expand(1024, 1024))
    return model


def mixed_types():
    model = nn.ModuleList(nn.Linear(512, 512) for _ in range(4))
    for module, dtype in zip(model, (torch.float32, torch.bfloat16, torch.float64, torch.float8_e4m3fn)):
        module.to(dtype)
    model.register_buffer("mask", torch.ones(512, 512, dtype=torch.bool))
    model.register_buffer("phases", torch.ones(512, 64, dtype=torch.complex64))
    model.register_buffer("small", torch.ones(512, 512, dtype=torch.int8), persistent=False)
    return model


def seven_billion():
    with torch.device("meta"):
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SEVEN_BILLION)).to(torch.bfloat16)


def seven_billion_as_the_command():
    """As `accelerate estimate-memory` makes it if the configuration on the hub names no class: AutoModel, float32."""
    with accelerate.init_empty_weights():
        return transformers.AutoModel.from_config(transformers.LlamaConfig(**SEVEN_BILLION), dtype=torch.float32)


def lora():
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SEVEN_BILLION)).to(torch.bfloat16)
        return get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))


MODELS = {
    "GPT-2 of 4 layers, its head tied": tied, "two overlapping views of one storage": one_flat_storage, "a buffer with stride 0": expanded,
    "six types, a buffer that is not saved": mixed_types, "Llama 7B in bfloat16, meta": seven_billion,
    "the same with LoRA": lora, "Llama 7B as `estimate-memory` makes it": seven_billion_as_the_command,
}  # fmt: skip


def storages(tensors):
    return sum({tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}.values())


def median_milliseconds(function, model):
    """The median of five calls, processor time."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        result = function(model)
        taken.append(time.process_time() - began)
    return result, statistics.median(taken) * 1e3


def of_the_file(program, model, file):
    """Bytes of the weights in the file saved by safetensors, from `tidemark model`, and its milliseconds; None if safetensors
    refuses the model.
    """
    try:
        save_model(model, str(file))
    except (RuntimeError, ValueError, NotImplementedError):
        return None, None, None
    with open(file, "rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = json.loads(subprocess.check_output([program, "model", file, "--format", "json"]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return max(ends), said["bytes"], (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def largest_layer(analysis):
    layer = max(analysis.facts.layers, key=lambda layer: layer.bytes)
    return f"{layer.bytes:,} ({layer.name})"


def row(program, folder, name, make):
    model = make()
    tensors = [*model.parameters(), *model.buffers()]
    (total, (largest, layers)), accelerates = median_milliseconds(calculate_maximum_sizes, model)
    analysis, ours = median_milliseconds(tidemark.analyze_model, model)
    largest_layers = layers[0] + (f" and {len(layers) - 1} more" if layers[1:] else "")
    in_file, of_file, milliseconds = of_the_file(program, model, folder / "model.safetensors")
    return [
        name, storages(tensors), round(total), analysis.parameter_bytes + analysis.buffer_bytes, f"{largest:,} ({largest_layers})",
        largest_layer(analysis), f"{accelerates:.1f}", f"{ours:.1f}", in_file, of_file, milliseconds and f"{milliseconds:.1f}",
    ]  # fmt: skip


def training_row(program, folder, python, workload):
    """The peak of some steps on a simulated GPU, by Tidemark and by PyTorch's allocator, and Accelerate's estimate for the same
    model, which assumes float32.
    """
    size = calculate_maximum_sizes(WORKLOADS[workload](torch.device("meta"))[0].to(torch.float32))[0]
    recording = folder / "plan.tide"
    training = [python, HERE / "peers_program.py", workload, "--steps", "1", "--device", "cuda"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    plan = [program, "plan", "--gpu", "H200", "--steps", "0", "-f", "-o", recording, "--", *training]
    printed = subprocess.run(plan, capture_output=True, check=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = next(json.loads(line) for line in printed.splitlines() if line.startswith('{"steps"'))
    summary = json.loads(subprocess.check_output([program, "summary", recording, "--format", "json"]))
    planned = next(device["peak_allocated_bytes"] for device in summary["devices"] if device["device"] == "cuda:0")
    estimates = [max(estimate_training_usage(size, kind).values()) for kind in ("float32", "bfloat16")]
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [workload, size, *estimates, planned, own["said"]["peak"], f"{seconds:.1f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "--phantom-python", help="an interpreter whose PyTorch is for CUDA, with transformers and peft: also plans training"
    )
    args = parser.parse_args()
    logging.getLogger("tidemark").setLevel(logging.ERROR)
    head = ["model", "its storages", "Accelerate", "analyze_model", "largest layer: Accelerate", "analyze_model", "ms: Accelerate",
            "analyze_model", "safetensors file", "`tidemark model`", "ms"]  # fmt: skip
    table(
        "Bytes of parameters and buffers", head, (row(args.program, args.folder, name, make) for name, make in MODELS.items())
    )
    if args.phantom_python:
        head = [
            "program",
            "model in float32",
            "Accelerate: float32",
            "bfloat16",
            "`tidemark plan`",
            "max_memory_allocated() there",
            "s",
        ]
        rows = (training_row(args.program, args.folder, args.phantom_python, workload) for workload in ("hf-llama", "hf-lora"))
        table("Bytes of training with AdamW", head, rows)


if __name__ == "__main__":
    main()
