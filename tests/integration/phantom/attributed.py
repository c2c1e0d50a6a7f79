"""Trains models for three steps, and prints the sizes of PyTorch's own tensors at the marks that it makes in the last step.

    python attributed.py CASE [CASE ...]

Then it runs another forward pass and prints the tensors saved for the backward pass, by PyTorch's saved-tensor hooks and a dispatch
mode that finds the module that made each. The last line is JSON: for each case a list of its ranks' values. Each runs in its own
processes, which are forked once PyTorch is loaded.

TIDEMARK_UNROUNDED names cases, with commas: in these PyTorch's allocator returns the requested size, rounded up; otherwise a block may
be larger.
"""

import ctypes
import json
import os
import sys

import torch
import torch._dynamo  # which optimizers load: once, before the processes part
import torchvision
from forked import run_alone, run_ranks
from peft import LoraConfig, get_peft_model
from saved_tensors import local, saved_by_module
from torch import nn
from torch.distributed.fsdp import fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

STEPS = 3
VOCABULARY, WIDTH, LAYERS, HEADS, TOKENS, SEQUENCES = 1024, 256, 4, 4, 128, 4
DISTRIBUTED = ("ddp", "fsdp2")

tidemark = ctypes.CDLL(None)
device = "cuda"  # the rank's own


def mark(name):
    if hasattr(tidemark, "tidemark_mark"):
        tidemark.tidemark_mark(name.encode())


def bytes_of(tensors):
    """Bytes of the tensors' storages on the GPU, each once."""
    storages = {}
    for tensor in tensors:
        if tensor is not None and local(tensor).is_cuda:
            storage = local(tensor).untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def held(model, optimizer):
    states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    return {
        "parameter": bytes_of(model.parameters()),
        "buffer": bytes_of(model.buffers()),
        "gradient": bytes_of(parameter.grad for parameter in model.parameters()),
        "optimizer_state": bytes_of(states),
        "allocated": torch.cuda.memory_allocated(),
    }


def llama(**options):
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=3 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=TOKENS, use_cache=False, **options,
    )
    return LlamaForCausalLM(config).to(device)


def tokens():
    return torch.randint(VOCABULARY, (SEQUENCES, TOKENS), device=device)


def language_loss(model):
    ids = tokens()
    return model(input_ids=ids, labels=ids).loss


def lora():
    adapted = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])
    return get_peft_model(llama(), adapted), language_loss


def checkpointed():
    model = llama()
    model.gradient_checkpointing_enable()
    model.model.layers[0].mlp.down_proj.register_forward_pre_hook(mark_recomputed)
    return model, language_loss


def mark_recomputed(*_):
    """The last call whose input is saved: then checkpointing has recomputed the activations needed by the first layer."""
    if torch._C._current_graph_task_id() != -1:  # in a backward pass
        mark("first layer recomputed")


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * (STEPS + 1)

    def __getitem__(self, index):
        return torch.randn(3, 64, 64), index % 10


def resnet():
    batches = iter(torch.utils.data.DataLoader(Pictures(), batch_size=8, num_workers=2, pin_memory=True))
    model = torchvision.models.resnet50(num_classes=10).to(device)

    def loss(model):
        pictures, labels = next(batches)
        return nn.functional.cross_entropy(model(pictures.to(device, non_blocking=True)), labels.to(device))

    return model, loss


def ddp():
    return nn.parallel.DistributedDataParallel(llama()), language_loss


def fsdp2():
    model = llama()
    for layer in model.model.layers:
        fully_shard(layer)
    return fully_shard(model), language_loss


def gradients_of_units(model):
    """[unit, [bytes of each storage]] for FSDP2's units, the inner ones first: a unit's gradients are parts of one storage."""
    units, seen = [], set()
    for path, module in reversed(list(model.named_modules())):
        if hasattr(module, "unshard"):
            storages = {local(parameter.grad).untyped_storage() for parameter in module.parameters()}
            new = {storage.data_ptr(): storage.nbytes() for storage in storages if storage.data_ptr() not in seen}
            seen.update(new)
            units.append((path or type(module).__name__, list(new.values())))
    return units


CASES = {"lora": lora, "llama": lambda: (llama(), language_loss), "checkpointed": checkpointed, "resnet": resnet}
CASES |= {"ddp": ddp, "fsdp2": fsdp2}


def train(case):
    if case in os.environ.get("TIDEMARK_UNROUNDED", "").split(","):
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    torch.manual_seed(0)
    model, loss_of = CASES[case]()
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-4)
    said = {"rank": torch.cuda.current_device(), "pid": os.getpid()}
    for step in range(STEPS):
        last = step == STEPS - 1
        loss = loss_of(model)
        if last:
            mark("forward done")
            said["forward done"] = held(model, optimizer)
        loss.backward()
        if last:
            mark("backward done")
            said["backward done"] = held(model, optimizer)
            said["gradients of units"] = gradients_of_units(model)
        optimizer.step()
        if last:
            mark("step done")
            said["step done"] = held(model, optimizer)
        optimizer.zero_grad()
        del loss
    said["saved"] = saved_by_module(model, loss_of)
    if case == "checkpointed":
        model.gradient_checkpointing_disable()
        said["saved without checkpointing"] = saved_by_module(model, loss_of)
    return said


if __name__ == "__main__":
    print(json.dumps({case: run_ranks(train, case) if case in DISTRIBUTED else [run_alone(train, case)] for case in sys.argv[1:]}), flush=True)
    os._exit(0)
