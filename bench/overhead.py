"""What recording costs a training step, beside the plain program and PyTorch's own memory history.

Run it under `tidemark run`; the stacks that are recorded are those of that command:

    tidemark run -q -o /tmp/overhead.tide --stacks python -- python bench/overhead.py --workload dense

Machines drift by tens of percent from minute to minute, so whole runs cannot be compared. Here all variants run in one
process and take turns every few steps; each turn is compared with the plain turn of the same round, and the median over
all rounds is reported with its quartiles. What else runs on a machine only ever adds time, so the fastest quarter of the
turns of each variant, compared with the plain one's, is reported too: where the two disagree, the machine was noisy.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import torch
from torch import nn

library = ctypes.CDLL(None)
if not hasattr(library, "tidemark_pause"):
    sys.exit("run this under `tidemark run`")


def dense(device):
    """12 small layers, AdamW, batch 16, one thread: an allocator event every 2 µs or less."""
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12))).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 64, device=device)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def example(device):
    """One step of examples/lora_finetune.py at its default size."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))
    import lora_finetune as lora

    width, layers, heads, length, batch = lora.SIZES["small"]
    model = lora.Transformer(len(lora.ALPHABET), width, layers, heads, length).to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.003)
    data = lora.batches(length, batch, device, seed=0)

    def step():
        tokens = next(data)
        logits = model(tokens[:, :-1])
        loss = lora.F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def huggingface_lora(device):
    """LoRA (r=16) on a 12-layer Llama of Hugging Face, small enough that launching kernels is what takes the time."""
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=12,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=32000,
        use_cache=False,
    )
    model = LlamaForCausalLM(config).to(device=device, dtype=torch.bfloat16)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=targets))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    tokens = torch.randint(0, 32000, (2, 128), device=device)

    def step():
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


WORKLOADS = {"dense": dense, "example": example, "hf-lora": huggingface_lora}


def history(stacks):
    torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks=stacks, max_entries=200_000)


def history_off():
    torch.cuda.memory._record_memory_history(enabled=None)


VARIANTS = {
    "plain": (lambda: None, lambda: None),
    "tidemark": (library.tidemark_resume, library.tidemark_pause),
    "torch history, python stacks": (lambda: history("python"), history_off),
    "torch history, all stacks": (lambda: history("all"), history_off),
}


def fastest_quarter(seconds):
    return statistics.mean(sorted(seconds)[: (len(seconds) + 3) // 4])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=WORKLOADS, default="dense")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=12, help="steps of each turn")
    parser.add_argument("--peers", action="store_true", help="measure PyTorch's memory history too (needs a GPU)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    args = parser.parse_args()
    device = torch.device(args.device)
    torch.manual_seed(0)
    step = WORKLOADS[args.workload](device)
    names = list(VARIANTS) if args.peers else ["plain", "tidemark"]

    def turn(name):
        on, off = VARIANTS[name]
        on()
        step()  # whatever switching disturbs is not measured
        if device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(args.steps):
            step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - began) / args.steps
        off()
        return seconds

    library.tidemark_pause()
    for name in names * 3:
        turn(name)
    times = {name: [] for name in names}
    for index in range(args.rounds):
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(turn(name))
    library.tidemark_resume()

    figures = {}
    print(f"{args.workload} on {device}, torch {torch.__version__}, stacks {os.environ.get('TIDEMARK_STACKS')}, "
          f"{args.rounds} rounds of {args.steps} steps")
    for name in names:
        ratios = [ours / plain for ours, plain in zip(times[name], times["plain"])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        milliseconds = statistics.median(times[name]) * 1e3
        fastest = fastest_quarter(times[name]) / fastest_quarter(times["plain"])
        figures[name] = {"step_ms": milliseconds, "ratio": middle, "ratio_quartiles": [low, high], "fastest": fastest}
        print(f"  {name:30}  {milliseconds:8.3f} ms a step   {middle:.3f}x plain   "
              f"(quartiles {low:.3f}..{high:.3f}, fastest quarter {fastest:.3f}x)")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"workload": args.workload, "device": str(device), "torch": torch.__version__,
                       "stacks": os.environ.get("TIDEMARK_STACKS"), "variants": figures}, file, indent=1)


if __name__ == "__main__":
    main()
