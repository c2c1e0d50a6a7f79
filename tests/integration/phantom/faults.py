"""Trains a model with a fault that costs memory, or with `--fixed` without it, and prints the peak in PyTorch's counter.

    python faults.py CASE [--fixed]
    python faults.py all       each case with and without its fault

Each runs in its own processes, which are forked once PyTorch is loaded. The last line is JSON: with two ranks, the first one's.
A case has the name of the advice against its fault, except "out_of_memory", whose fault is that of "checkpoint_activations".
"""

import copy
import json
import os
import sys
import tempfile

import torch
import torch._dynamo  # which optimizers and checkpoint load: once, before the processes part
import torch.nn.functional as F
from forked import run_alone, run_ranks
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, LAYERS, TOKENS, STEPS = 8192, 512, 6, 8192, 3
CHUNKS = 32
LIMIT = 3 << 29


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden):
        return hidden + self.down(F.gelu(self.up(self.norm(hidden))))


class Model(nn.Module):
    def __init__(self, recomputes=False):
        super().__init__()
        self.recomputes = recomputes
        with torch.device("cuda"):
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)
            self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def hidden(self, ids):
        hidden = self.embedding(ids)
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=False) if self.recomputes else layer(hidden)
        return self.norm(hidden)

    def forward(self, ids):
        return self.lm_head(self.hidden(ids))


class ChunkedLoss(Model):
    """Makes the logits of some of the tokens at a time, in the forward and in the backward pass."""

    def part(self, hidden, ids):
        return F.cross_entropy(self.lm_head(hidden).float(), ids, reduction="sum")

    def forward(self, ids):
        parts = zip(self.hidden(ids).chunk(CHUNKS), ids.chunk(CHUNKS))
        return sum(checkpoint(self.part, hidden, target, use_reentrant=False) for hidden, target in parts) / len(ids)


class Fp32Adam(torch.optim.Optimizer):
    """Keeps the moments in 32 bits, or in the parameters' type."""

    def __init__(self, parameters, state_dtype):
        super().__init__(parameters, {"state_dtype": state_dtype})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                for name in ("exp_avg", "exp_avg_sq"):
                    if name not in state:
                        state[name] = torch.zeros_like(parameter, dtype=group["state_dtype"])
                state["exp_avg"].lerp_(parameter.grad.to(state["exp_avg"].dtype), 0.1)
                state["exp_avg_sq"].mul_(0.9)
                parameter.add_(state["exp_avg"], alpha=-1e-4)


def tokens(count=TOKENS):
    return torch.randint(VOCABULARY, (count,), device="cuda")


def next_token_loss(model, count=TOKENS):
    ids = tokens(count)
    return F.cross_entropy(model(ids), ids)


def train(model, optimizer, loss_of=next_token_loss, steps=STEPS):
    for _ in range(steps):
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


def adamw(model):
    return torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])


def gradients_in_forward(fixed):
    model = Model()
    optimizer = adamw(model)
    for _ in range(STEPS):
        next_token_loss(model).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=fixed)


def freeze_half(model):
    frozen = [parameter for layer in model.layers[: LAYERS // 2] for parameter in layer.parameters()]
    for parameter in frozen:
        parameter.requires_grad_(False)
    return frozen


def short_steps(model, optimizer):
    """The peak comes later."""
    for step in range(2):
        next_token_loss(model, TOKENS // 8).backward()
        optimizer.step()
        if step == 0:
            optimizer.zero_grad()


def frozen_gradients(fixed):
    model = Model()
    short_steps(model, adamw(model))
    for parameter in freeze_half(model):
        if fixed:
            parameter.grad = None
    train(model, adamw(model))


def frozen_optimizer_state(fixed):
    model = Model()
    optimizer = adamw(model)
    short_steps(model, optimizer)
    optimizer.zero_grad()
    for parameter in freeze_half(model):
        if fixed:
            del optimizer.state[parameter]
    train(model, optimizer)


def large_optimizer_state(fixed):
    model = Model().bfloat16()
    train(model, Fp32Adam(model.parameters(), torch.bfloat16 if fixed else torch.float32))


def checkpoint_activations(fixed):
    model = Model(recomputes=fixed)
    train(model, adamw(model))


def logits(fixed):
    model = ChunkedLoss() if fixed else Model()
    train(model, adamw(model), (lambda model: model(tokens())) if fixed else next_token_loss)


def logits_upcast(fixed):
    def upcast_loss(model):
        ids = tokens()
        return F.cross_entropy(model(ids).float(), ids)

    model = (ChunkedLoss() if fixed else Model()).bfloat16()
    train(model, adamw(model), (lambda model: model(tokens())) if fixed else upcast_loss)


def checkpoint_copies(fixed):
    model = Model()
    optimizer = adamw(model)
    for _ in range(STEPS):
        train(model, optimizer, steps=1)
        best = {name: tensor.cpu() for name, tensor in model.state_dict().items()} if fixed else copy.deepcopy(model.state_dict())
    del best


def loaded_checkpoint(fixed):
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), folder + "/model.pt")
        state = torch.load(folder + "/model.pt", map_location="cpu" if fixed else None)
    model.load_state_dict(state)
    train(model, adamw(model))


def model_copies(fixed):
    model = Model()
    average = copy.deepcopy(model.cpu() if fixed else model)
    optimizer = adamw(model.cuda())
    for _ in range(STEPS):
        train(model, optimizer, steps=1)
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters()):
                mean.lerp_(parameter.to(mean.device), 0.01)


def collected_results(fixed):
    model = Model()
    short_steps(model, adamw(model))
    for _ in range(2):
        results = []
        for _ in range(80):
            with torch.no_grad():
                hidden = model.hidden(tokens())
            results.append(hidden.cpu() if fixed else hidden)
        del results, hidden


def gradient_buckets(fixed):
    model = nn.parallel.DistributedDataParallel(Model(), gradient_as_bucket_view=fixed)
    # Few tokens: the peak is at the complete gradients. At the peak of activations, only the buckets exist in either case.
    train(model, adamw(model), lambda model: next_token_loss(model, TOKENS // 64))


def gathered_parameters(fixed):
    model = Model()
    for layer in model.layers:
        fully_shard(layer, reshard_after_forward=fixed)
    train(fully_shard(model), adamw(model))


def inference_with_autograd(fixed):
    model = Model()
    short_steps(model, adamw(model))
    for _ in range(STEPS):
        with torch.set_grad_enabled(not fixed):
            next_token_loss(model).item()


class HiddenStates(Model):
    """Without the logits, whose size would determine the peak of the program that recomputes one layer at a time."""

    def all_layers(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden

    def forward(self, ids):
        return self.hidden(ids) if self.recomputes else checkpoint(self.all_layers, self.embedding(ids), use_reentrant=False)


def checkpoint_each_layer(fixed):
    model = HiddenStates(recomputes=fixed)
    train(model, adamw(model), lambda model: model(tokens()).square().mean())


class Attention(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.norm = nn.LayerNorm(WIDTH)
        self.projection = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden):
        heads = self.projection(self.norm(hidden)).unflatten(-1, (3, WIDTH // 64, 64)).transpose(1, 3)
        queries, keys, values = heads.unbind(2)
        if self.fused:
            result = F.scaled_dot_product_attention(queries, keys, values)
        else:
            result = (queries @ keys.transpose(-2, -1) / 8).softmax(-1) @ values
        return hidden + self.out(result.transpose(1, 2).flatten(-2))


def attention_matrices(fixed):
    model = nn.Sequential(*(Attention(fused=fixed) for _ in range(LAYERS))).cuda()
    train(model, adamw(model), lambda model: model(torch.randn(4, 1024, WIDTH, device="cuda")).square().mean())


def forwards_before_backward(fixed):
    model = Model()
    optimizer = adamw(model)
    for _ in range(STEPS):
        losses = []
        for _ in range(8):
            losses.append(model.hidden(tokens(TOKENS // 8)).square().mean())
            if fixed:
                losses[-1].backward()
        if not fixed:
            sum(losses).backward()
        optimizer.step()
        optimizer.zero_grad()


def optimizer_temporaries(fixed):
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1, fused=fixed or None)
    train(model, optimizer, lambda model: next_token_loss(model, TOKENS // 64))


def kept_over_steps(fixed):
    model = Model()
    optimizer = adamw(model)
    for _ in range(3):
        regularizers = []
        for _ in range(5):
            ids = tokens(TOKENS // 8)
            logits = model(ids)
            regularizer = logits.square().mean()
            F.cross_entropy(logits, ids).backward(inputs=list(model.parameters()))
            del logits
            regularizers.append(regularizer.item() if fixed else regularizer)
            optimizer.step()
            optimizer.zero_grad()


def held_results(fixed):
    """An evaluation after each second step; results of both are held by variables."""
    model = Model()
    optimizer = adamw(model)
    for step in range(8):
        ids = tokens(TOKENS // 8)
        logits = model(ids)
        loss = F.cross_entropy(logits, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if fixed:
            del logits, loss
        if step % 2:
            with torch.no_grad():
                scores = model(tokens(TOKENS // 2))
                scores.argmax(-1)
                if fixed:
                    del scores


def failed_call(fixed):
    """A batch that is too large, and half of it, which fits; but not while the exception keeps the tensors of the whole one."""
    torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.get_device_properties(0).total_memory)
    model = Model()
    failed = False
    try:
        next_token_loss(model)
    except torch.OutOfMemoryError:
        failed = True
        if not fixed:
            try:
                next_token_loss(model, TOKENS // 2).backward()
            except torch.OutOfMemoryError as error:
                print(error, file=sys.stderr)
    if fixed and failed:
        next_token_loss(model, TOKENS // 2).backward()


def out_of_memory(fixed):
    """The model fits into its part of the device if its activations are recomputed."""
    torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.get_device_properties(0).total_memory)
    try:
        checkpoint_activations(fixed)
    except torch.OutOfMemoryError as error:
        print(error, file=sys.stderr)


CASES = {
    "gradients_in_forward": gradients_in_forward,
    "frozen_gradients": frozen_gradients,
    "frozen_optimizer_state": frozen_optimizer_state,
    "large_optimizer_state": large_optimizer_state,
    "checkpoint_activations": checkpoint_activations,
    "logits": logits,
    "logits_upcast": logits_upcast,
    "checkpoint_copies": checkpoint_copies,
    "loaded_checkpoint": loaded_checkpoint,
    "model_copies": model_copies,
    "collected_results": collected_results,
    "gradient_buckets": gradient_buckets,
    "gathered_parameters": gathered_parameters,
    "inference_with_autograd": inference_with_autograd,
    "checkpoint_each_layer": checkpoint_each_layer,
    "attention_matrices": attention_matrices,
    "forwards_before_backward": forwards_before_backward,
    "optimizer_temporaries": optimizer_temporaries,
    "kept_over_steps": kept_over_steps,
    "held_results": held_results,
    "failed_call": failed_call,
    "out_of_memory": out_of_memory,
}
DISTRIBUTED = ("gradient_buckets", "gathered_parameters")


def run(case, fixed):
    CASES[case](fixed)
    return {"case": case, "fixed": fixed, "pid": os.getpid(), "peak": torch.cuda.max_memory_allocated()}


def run_anywhere(case, fixed):
    return run_ranks(run, case, fixed)[0] if case in DISTRIBUTED else run_alone(run, case, fixed)


if __name__ == "__main__":
    runs = [(case, fixed) for case in CASES for fixed in (False, True)] if sys.argv[1] == "all" else [(sys.argv[1], "--fixed" in sys.argv)]
    print(json.dumps([run_anywhere(*which) for which in runs]), flush=True)
    os._exit(0)
