#!/usr/bin/env python3
"""Fine-tunes a causal language model with DP-SGD (Opacus) for a few steps and prints the GPU memory of its phases.

`tidemark sweep --preset dp-sgd` runs this program for every configuration of its matrix. It also runs by itself, on a real GPU
or in a plan:

    tidemark plan --gpu H100-80GB -- python dp_sgd.py --config config.json --seq_length 256 --batch_size 16 --lora_rank 8
    torchrun --nproc-per-node 2 dp_sgd.py --config config.json --wrap fsdp --clipping ghost

The last line of stdout is "DP_SGD " and a JSON object: for each phase PyTorch's allocated bytes at its end and at its peak, and
the bytes of parameters, gradients and per-sample gradients by component. Needs torch, transformers, peft and opacus. The data
are random tokens.
"""

import argparse
import contextlib
import ctypes
import json
import os
from collections import defaultdict
from pathlib import Path

import opacus
import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus.utils.batch_memory_manager import BatchMemoryManager
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoConfig, AutoModelForCausalLM

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
# Components of parameters: the first one with a word in the parameter's name.
COMPONENTS = {
    "lora": ("lora_",),
    "normalization": ("norm", "ln_"),
    "attention": ("attn", "attention"),
    "mlp": ("mlp", "feed_forward"),
    "embedding": ("embed", "wte", "wpe", "lm_head"),
}


class Phases:
    """PyTorch's allocated bytes at the end and at the peak of each phase. Phases nest; each is a range of the recording."""

    def __init__(self, device):
        self.device = device
        self.seen = {}
        self.peaks = []  # for the phases that have not ended
        self.recorder = ctypes.CDLL(None)

    @contextlib.contextmanager
    def __call__(self, name):
        self.say("tidemark_range_begin", name)
        self.take_peak()
        self.peaks.append(0)
        yield
        self.take_peak()
        peak = self.peaks.pop()
        if self.peaks:
            self.peaks[-1] = max(self.peaks[-1], peak)
        phase = self.seen.setdefault(name, {"end_bytes": 0, "peak_bytes": 0})
        phase["end_bytes"] = max(phase["end_bytes"], torch.cuda.memory_allocated(self.device))
        phase["peak_bytes"] = max(phase["peak_bytes"], peak)
        self.say("tidemark_range_end", name)

    def take_peak(self):
        """Adds the peak since the last call to the innermost phase."""
        if self.peaks:
            self.peaks[-1] = max(self.peaks[-1], torch.cuda.max_memory_allocated(self.device))
        torch.cuda.reset_peak_memory_stats(self.device)

    def say(self, function, name):
        if hasattr(self.recorder, function):
            getattr(self.recorder, function)(name.encode())


def component(name):
    return next((found for found, words in COMPONENTS.items() if any(word in name for word in words)), "other")


def tensor_bytes(value):
    """Bytes of a tensor, of a list of them (Opacus keeps one per backward), or 0 for None."""
    if isinstance(value, (list, tuple)):
        return sum(map(tensor_bytes, value))
    value = getattr(value, "_local_tensor", value)  # this rank's part of a sharded parameter
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0


def bytes_by_component(model):
    """{kind: {component: bytes}} of the parameters and their gradients now."""
    kinds = {name: defaultdict(int) for name in ("parameters", "gradients", "per_sample_gradients", "summed_gradients")}
    for name, parameter in model.named_parameters():
        place = component(name)
        kinds["parameters"][place] += tensor_bytes(parameter)
        kinds["gradients"][place] += tensor_bytes(parameter.grad)
        kinds["per_sample_gradients"][place] += tensor_bytes(getattr(parameter, "grad_sample", None))
        kinds["summed_gradients"][place] += tensor_bytes(getattr(parameter, "summed_grad", None))
    return kinds


def keep_largest(kept, seen):
    if sum(map(sum, (places.values() for places in seen.values()))) > sum(map(sum, (places.values() for places in kept.values()))):
        kept.update(seen)


def model_configuration(args):
    if args.config:
        values = json.loads(Path(args.config).read_text())
        return AutoConfig.for_model(values.pop("model_type"), **values)
    return AutoConfig.from_pretrained(args.model_name, token=args.token)


def load_model(args, device):
    with device:
        model = AutoModelForCausalLM.from_config(model_configuration(args), dtype=DTYPES[args.dtype])
    if args.lora_rank:
        layers = args.lora_layers.split(",") if args.lora_layers else "all-linear"
        model = get_peft_model(model, LoraConfig(r=args.lora_rank, lora_alpha=2 * args.lora_rank, target_modules=layers))
    return model.to(device).train()


def wrap(args, model):
    if args.wrap == "ddp":
        return DifferentiallyPrivateDistributedDataParallel(model)
    if args.wrap == "fsdp":
        from opacus.utils.fsdp_utils import FSDP2Wrapper

        return FSDP2Wrapper(model)
    return model


def train(args, phases, model, optimizer, criterion, loader, device):
    """Runs the steps; returns the largest bytes by component seen before an optimizer step."""
    largest = {}
    steps = 0
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=args.max_physical_batch_size, optimizer=optimizer) as batches:
        for (tokens,) in batches:
            tokens = tokens.to(device)
            positions = torch.arange(tokens.shape[1], device=device).repeat(tokens.shape[0], 1)
            with phases("forward"):
                logits = model(input_ids=tokens, position_ids=positions, use_cache=False).logits[:, :-1]
                logits = logits.reshape(-1, logits.shape[-1])
                labels = tokens[:, 1:].reshape(-1)
                shape = {"shape": (tokens.shape[0], tokens.shape[1] - 1)} if args.clipping == "ghost" else {}
                loss = criterion(logits, labels, **shape)
            with phases("backward"):
                loss.backward()
            del loss, logits
            keep_largest(largest, bytes_by_component(model))
            with phases("optimizer"):
                steps += not getattr(optimizer, "_step_skip_queue", [False])[0]
                optimizer.step()
                optimizer.zero_grad()
            if steps == args.num_steps:
                break
    return largest


def run(args):
    rank = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    if args.wrap != "none":
        torch.distributed.init_process_group("nccl")
    torch.manual_seed(0)
    phases = Phases(device)
    with phases("model loading"):
        model = load_model(args, device)
    with phases("data set"):
        size = args.batch_size * args.num_steps * int(os.environ.get("WORLD_SIZE", 1))
        vocabulary = model.config.vocab_size
        data = TensorDataset(torch.randint(0, vocabulary, (size, args.seq_length)))
        loader = DataLoader(data, batch_size=args.batch_size)
    with phases("wrapping"):
        model = wrap(args, model)
    with phases("optimizer creation"):
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    with phases("privacy engine"):
        mode = {"hooks": "hooks", "ghost": "ghost_fsdp" if args.wrap == "fsdp" else "ghost"}[args.clipping]
        criterion = torch.nn.CrossEntropyLoss()
        private = PrivacyEngine(accountant="rdp").make_private(
            module=model, optimizer=optimizer, criterion=criterion, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0,
            poisson_sampling=False, grad_sample_mode=mode)
        model, optimizer, loader = private[0], private[1], private[-1]
        criterion = private[2] if args.clipping == "ghost" else criterion
    with phases("training loop"):
        largest = train(args, phases, model, optimizer, criterion, loader, device)
    peak = max(phase["peak_bytes"] for phase in phases.seen.values())
    result = {"peak_allocated_bytes": peak, "phases": phases.seen, "components": largest, "torch": torch.__version__, "opacus": opacus.__version__}
    if rank == 0:
        print("DP_SGD " + json.dumps(result), flush=True)
    if args.wrap != "none":
        torch.distributed.destroy_process_group()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model_name", default="meta-llama/Meta-Llama-3-8B", help="model on the Hugging Face hub, of which only the configuration is read")
    model.add_argument("--config", metavar="FILE", help="the model's config.json, where there is no network")
    parser.add_argument("--token", help="access token for the hub")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bf16")
    parser.add_argument("--seq_length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=8, help="logical batch: samples of one optimizer step of a process")
    parser.add_argument("--max_physical_batch_size", type=int, default=1, help="samples of one forward and backward pass")
    parser.add_argument("--lora_rank", type=int, default=8, help="0 trains all parameters")
    parser.add_argument("--lora_layers", help="names of the linear layers with LoRA, separated by commas (default: all)")
    parser.add_argument("--clipping", choices=("hooks", "ghost"), default="hooks", help="per-sample gradients, or ghost clipping, which has none")
    parser.add_argument("--wrap", choices=("none", "ddp", "fsdp"), default="none", help="for several GPUs, under torchrun; fsdp needs ghost")
    parser.add_argument("--num_steps", type=int, default=3)
    args = parser.parse_args()
    if args.wrap == "fsdp" and args.clipping != "ghost":
        parser.error("--wrap fsdp needs --clipping ghost: Opacus shards no per-sample gradients")
    return args


if __name__ == "__main__":
    run(arguments())
