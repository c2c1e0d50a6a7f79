"""Trains a model for three steps, and says what PyTorch's own tensors hold at the marks that it makes in the last step.

    python attributed.py lora|llama|checkpointed|resnet|ddp|fsdp2 [--saved]

The last two run on two ranks, and print a list of what each says. With `--saved` the program says instead how many bytes each module's saved activations hold at the end of the last forward pass, by PyTorch's
saved-tensor hooks and a dispatch mode that tells which module made them. The last line is JSON.
"""

import ctypes
import json
import os
import sys

import torch
from rank_launcher import launch
from torch import nn

STEPS = 3
VOCABULARY, WIDTH, LAYERS, HEADS, TOKENS, SEQUENCES = 1024, 256, 4, 4, 128, 4

tidemark = ctypes.CDLL(None)
rank = int(os.environ.get("LOCAL_RANK", 0))
device = torch.device("cuda", rank)


def mark(name):
    if hasattr(tidemark, "tidemark_mark"):
        tidemark.tidemark_mark(name.encode())


def local(tensor):
    """A rank's own part of a DTensor."""
    return getattr(tensor, "_local_tensor", tensor)


def bytes_of(tensors):
    """Of the tensors' storages on the GPU, each once."""
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
        "allocated": torch.cuda.memory_allocated(device),
    }


def llama(**options):
    from transformers import LlamaConfig, LlamaForCausalLM

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
    from peft import LoraConfig, get_peft_model

    adapted = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])
    return get_peft_model(llama(), adapted), language_loss


def checkpointed():
    model = llama()
    model.gradient_checkpointing_enable()
    return model, language_loss


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * (STEPS + 1)

    def __getitem__(self, index):
        return torch.randn(3, 64, 64), index % 10


def resnet():
    import torchvision

    batches = iter(torch.utils.data.DataLoader(Pictures(), batch_size=8, num_workers=2, pin_memory=True))
    model = torchvision.models.resnet50(num_classes=10).to(device)

    def loss(model):
        pictures, labels = next(batches)
        return nn.functional.cross_entropy(model(pictures.to(device, non_blocking=True)), labels.to(device))

    return model, loss


def ddp():
    return nn.parallel.DistributedDataParallel(llama(), device_ids=[rank]), language_loss


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    model = llama()
    for layer in model.model.layers:
        fully_shard(layer)
    return fully_shard(model), language_loss


CASES = {"lora": lora, "llama": lambda: (llama(), language_loss), "checkpointed": checkpointed, "resnet": resnet, "ddp": ddp, "fsdp2": fsdp2}


def tensors_in(values):
    leaves = torch.utils._pytree.tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_cuda]


class MadeBy(torch.utils._python_dispatch.TorchDispatchMode):
    """Which module's call made each storage: the innermost one under way."""

    def __init__(self, model):
        super().__init__()
        self.calls = [""]
        self.module_of = {}
        self.saved = {}
        for name, module in model.named_modules():
            module.register_forward_pre_hook(lambda *_, name=name: self.calls.append(name))
            module.register_forward_hook(self.leave)

    def leave(self, *_):
        self.calls.pop()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        given = {tensor.untyped_storage().data_ptr() for tensor in tensors_in([arguments, options or {}])}
        for tensor in tensors_in(made):
            if (address := tensor.untyped_storage().data_ptr()) not in given:  # no view of what there was
                self.module_of[address] = self.calls[-1]
        return made

    def save(self, tensor):
        if tensor.is_cuda:
            self.saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor


def saved_by_module(model, loss_of):
    """Bytes of saved storages by the module that made them; parameters and inputs are not made by any."""
    own = {local(tensor).untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    made_by = MadeBy(model)
    with made_by, torch.autograd.graph.saved_tensors_hooks(made_by.save, lambda tensor: tensor):
        loss = loss_of(model)
    by_module = {}
    for address, size in made_by.saved.items():
        if address not in own:
            name = made_by.module_of.get(address, "")
            by_module[name] = by_module.get(name, 0) + size
    del loss
    return by_module


def main(case, *options):
    distributed = case in ("ddp", "fsdp2")
    torch.manual_seed(0)
    torch.cuda.set_device(device)
    if distributed:
        torch.distributed.init_process_group("nccl", device_id=device)
    model, loss_of = CASES[case]()
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-4)
    said = {"rank": rank}
    for step in range(STEPS):
        last = step == STEPS - 1
        if last and "--saved" in options:
            said["saved"] = saved_by_module(model, loss_of)
            break
        loss = loss_of(model)
        if last:
            mark("forward done")
            said["forward done"] = held(model, optimizer)
        loss.backward()
        if last:
            mark("backward done")
            said["backward done"] = held(model, optimizer)
        optimizer.step()
        if last:
            mark("step done")
            said["step done"] = held(model, optimizer)
        optimizer.zero_grad()
        del loss
    if distributed:
        torch.distributed.destroy_process_group()
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    if sys.argv[1] in ("ddp", "fsdp2") and "RANK" not in os.environ:
        launch(*sys.argv)
    main(*sys.argv[1:])
