"""The memory manager on a GPU, for scripts/gpu_batches.py: a model's largest batch, gradients of a retried step, checkpointing.

    batches_gpu.py sizes MODEL                                  searched, searched with a plan, and by trying
    batches_gpu.py sizes MODEL --batch-size N [--limited]       three training steps; with no more memory than the search had
    batches_gpu.py retry
    batches_gpu.py optimize

The last line on stdout is JSON.
"""

import argparse
import gc
import json
import subprocess
import sys

import torch

GIB = 1 << 30
LIMIT = 12 * GIB  # of PyTorch: sizes are found faster than with all of the memory



def mlp():
    layers = [torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU()) for _ in range(8)]
    return torch.nn.Sequential(*layers), lambda samples: torch.randn(samples * 16, 4096, device="cuda")


def convnet():
    def block(inputs, outputs, stride):
        convolution = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        return torch.nn.Sequential(convolution, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())

    widths = [3, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [block(a, b, 2 if b > a > 3 else 1) for a, b in zip(widths, widths[1:])]
    head = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 100))
    return torch.nn.Sequential(*blocks, head), lambda samples: torch.randn(samples, 3, 112, 112, device="cuda")


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=8192, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12,
                         max_position_embeddings=512)
    return LlamaForCausalLM(config), lambda samples: torch.zeros(samples, 512, dtype=torch.long, device="cuda")


MODELS = {"mlp": mlp, "convnet": convnet, "llama": llama}
STARTS = {"mlp": 256, "convnet": 32, "llama": 8}  # of the size planned first; otherwise 1


def loss_of(model, batch):
    result = model(batch)
    return getattr(result, "logits", result).float().mean()


def step_of(name):
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step(samples):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, inputs(samples)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def fits(step, samples):
    gc.collect()
    torch.cuda.empty_cache()
    try:
        step(samples)
        torch.cuda.synchronize()
    except RuntimeError as error:
        # PyTorch tries the next of cuDNN's engines if one has no memory, until none is left.
        if isinstance(error, torch.cuda.OutOfMemoryError) or "unable to find an engine" in str(error):
            return False
        raise
    return True


def largest(step, least):
    """Tries every relevant size, upwards from one that fits."""
    low, high = least, max(least + 1, int(least * 1.06))
    while fits(step, high):
        low, high = high, max(high + 1, int(high * 1.06))
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(step, middle) else (low, middle)
    return low


def told(found):
    sizes = [[probe.batch_size, probe.fits, probe.peak_bytes] for probe in found.probes]
    planned = [[one.batch_size, one.fits, one.peak_bytes] for one in found.planned]
    return {"batch_size": found.batch_size, "ended": found.ended, "limit_bytes": found.limit_bytes, "probes": sizes,
            "failed": sum(not probe.fits for probe in found.probes), "planned": planned}


def trains(model, samples):
    """Whether a separate program has the memory for three consecutive steps of a training."""
    command = [sys.executable, __file__, "sizes", model, "--batch-size", str(samples), "--limited"]
    done = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, check=False)
    if done.returncode != 0 and "out of memory" not in done.stderr and "unable to find an engine" not in done.stderr:
        raise RuntimeError(done.stderr)
    return done.returncode == 0


def keep_to_limit():
    torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.get_device_properties(0).total_memory)


def sizes(options):
    if options.batch_size:
        if options.limited:
            keep_to_limit()
        step = step_of(options.model)
        for _ in range(3):
            step(options.batch_size)
        return None
    import tidemark

    keep_to_limit()
    step = step_of(options.model)
    command = [sys.executable, __file__, "sizes", options.model, "--batch-size", "{batch_size}"]
    # First, before there is optimizer state or a handle of a library: like a program.
    planned = tidemark.auto_batch_size(step, start=STARTS[options.model], plan=command)
    searched = tidemark.auto_batch_size(step)
    truth = largest(step, max(planned.batch_size or 1, searched.batch_size or 1))
    tried = {planned.batch_size, int(planned.batch_size / 0.95) + 1, searched.batch_size}
    return {"largest": truth, "searched": told(searched), "planned": told(planned),
            "training": {size: trains(options.model, size) for size in sorted(tried)}}


def held():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch._C._host_emptyCache()  # unused pinned memory is freed, whatever the state of the copies' events
    pinned = torch.cuda.host_memory_stats()
    return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(),
            "pinned": pinned["allocated_bytes.current"]}


def retry(options):
    import tidemark

    torch.manual_seed(0)
    width = 2048
    layers = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh()) for _ in range(12)]
    model = torch.nn.Sequential(*layers).double().cuda()
    data = torch.randn(6000, width, dtype=torch.float64)
    total = torch.cuda.get_device_properties(0).total_memory

    def step(part, weight):
        loss = model(part.pin_memory().cuda(non_blocking=True)).square().mean()
        (loss * weight).backward()
        return loss.item()

    def gradients():
        made = [parameter.grad.detach().cpu() for parameter in model.parameters()]
        model.zero_grad(set_to_none=True)
        return made

    step(data[:16], 1.0)  # handles and workspaces of the libraries
    gradients()
    whole = tidemark.retry_on_oom(step, data, model=model)
    expected = gradients()
    before = held()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.set_per_process_memory_fraction((before["reserved"] + GIB) / total)
    parts = tidemark.retry_on_oom(step, data, model=model)
    peak = torch.cuda.max_memory_allocated()
    made = gradients()
    torch.cuda.set_per_process_memory_fraction(1.0)
    error = max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-300)) for a, b in zip(made, expected))
    return {"whole": {"retries": whole.retries, "size": whole.size}, "parts": {"retries": parts.retries, "size": parts.size},
            "largest_relative_difference": error, "peak_bytes": peak, "before": before, "after": held()}


def peak_of(model, batch):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.autograd.grad(loss_of(model, batch), list(model.parameters()))
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def optimize(options):
    import tidemark

    result = {}
    for name, make, threshold in (("llama", llama, 4000), ("mlp", mlp, 6000)):
        torch.manual_seed(0)
        model, inputs = make()
        model = model.cuda().train()
        samples = 32 if name == "llama" else 1600
        peak_of(model, inputs(1))
        before = peak_of(model, inputs(samples))
        manager = tidemark.MemoryManager(threshold_mb=threshold)
        shape, dtype = inputs(samples).shape, inputs(1).dtype
        size = manager.optimize_memory(model, shape, dtype=dtype)
        done = manager.last_optimization
        after = peak_of(model, inputs(samples))
        result[name] = {"threshold_bytes": threshold << 20, "before": before, "after": after, "size": size, "notes": done.notes,
                        "checkpointed": done.checkpointed,
                        "said": [None if mb is None else int(mb * 2**20) for mb in (done.peak_before_mb, done.peak_after_mb)]}
        del model, manager
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["sizes", "retry", "optimize"])
    parser.add_argument("model", nargs="?", choices=[*MODELS])
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--limited", action="store_true")
    arguments = parser.parse_args()
    print(json.dumps({"sizes": sizes, "retry": retry, "optimize": optimize}[arguments.part](arguments)))
