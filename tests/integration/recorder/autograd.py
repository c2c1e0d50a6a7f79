"""Makes a block of a unique size in every node of several backward passes, and prints the node's properties as JSON.

Blocks made outside are listed too; the losses are, bit for bit, those of random_training.py too. --device cuda runs it on a GPU.
"""

import argparse
import json
import threading

import random_training
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
device = parser.parse_args().device
torch.set_num_threads(1)
torch.manual_seed(0)

nodes, forward, outside, passes, losses, graphs = [], [], [], [], [], []
sizes = iter(range(512 * 1001, 1 << 20, 512))  # small enough for a GPU's allocator to give exactly that


def allocate():
    """A block of a size that no other has."""
    size = next(sizes)
    torch.empty(size, dtype=torch.uint8, device=device)
    return size


def of_node(node):
    """Its name, number (from PyTorch 2.1 on), and the thread assumed to have made it, which calls this."""
    number = node._sequence_nr() if hasattr(node, "_sequence_nr") else None
    return {"class": node.name().split("::")[-1], "sequence": number, "forward_thread": threading.get_native_id()}


def watch(node, action=lambda: None):
    """Makes a block when the node has run, still inside its evaluation, and runs another action."""
    known = of_node(node)

    def hook(*_):
        nodes.append({**known, "size": allocate(), "thread": threading.get_native_id()})
        action()
        nodes.append({**known, "size": allocate(), "thread": threading.get_native_id()})

    node.register_hook(hook)


def watch_graph(loss):
    """Watches all nodes of a graph that this thread has made."""
    found, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in found:
            continue
        found.add(node)
        watch(node)
        waiting += [next_node for next_node, _ in node.next_functions]
    graphs.append([of_node(node) for node in found])


def made(value):
    """Makes a block right after an operation, the one that made the thread's latest node."""
    forward.append({**of_node(value.grad_fn), "size": allocate()})
    return value


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        outside.append(allocate())
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        allocate()
        return gradient * 3


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clone()


def plain(x):
    value = made(first(x))
    value = made(nn.functional.gelu(value))
    value = made(Scale.apply(value))
    value = made(nn.functional.layer_norm(value, value.shape[-1:]))
    value = made(Shift.apply(Scale.apply(value)))
    return made(torch.softmax(second(value), -1)).square().mean()


def part(x):
    """The checkpointed part: its nodes that run are those of the recomputation, on the thread of the backward pass."""
    value = torch.tanh(first(x)).sin()
    if value.grad_fn is not None:
        watch(value.grad_fn)
    return value


def run(loss):
    """A backward pass, and two blocks beside it."""
    losses.append(loss.item().hex())
    before = allocate()
    loss.backward()
    passes.append([before, allocate()])


def allocate_below(depth):
    """Calls through C this many times, with frames at the places of the backward pass's, and allocates at the end."""
    return next(map(lambda _: allocate() if depth == 0 else allocate_below(depth - 1), [None]))


def refuse():
    raise RuntimeError("refused")


def fail(loss):
    try:
        loss.backward()
    except RuntimeError as error:
        assert "refused" in str(error), error
    else:
        raise AssertionError("a hook raised an error, and nothing came of it")
    outside.extend(allocate_below(depth) for depth in range(20))


first, second = (nn.Linear(128, 128).to(device) for _ in range(2))
data = torch.randn(64, 128, device=device, requires_grad=True)

loss = plain(data)
watch_graph(loss)
run(loss)

for reentrant in (True, False):
    loss = checkpoint(part, data * 1, use_reentrant=reentrant).sum()
    watch(loss.grad_fn)
    run(loss)

# An error in a node, in one inside another (a backward pass that a hook starts), and one that is caught in there.
value = torch.tanh(first(data))
watch(value.grad_fn, refuse)
fail(value.sum())
inner = torch.sin(data).sum()
watch(inner.grad_fn, refuse)
value = torch.tanh(first(data))
watch(value.grad_fn, inner.backward)
fail(value.sum())
inner = torch.cos(data).sum()
watch(inner.grad_fn, refuse)
value = torch.tanh(first(data))
watch(value.grad_fn, lambda: fail_inside(inner))


def fail_inside(loss):
    try:
        loss.backward()
    except RuntimeError:
        pass


run(value.sum())

# The nodes of another thread, and nodes that a backward pass made.
others = []
thread = threading.Thread(target=lambda: (others.append(plain(data)), watch_graph(others[0])))
thread.start()
thread.join()
run(others[0])
(gradient,) = torch.autograd.grad(torch.exp(data).sin().sum(), data, create_graph=True)
run(gradient.square().sum())

losses += random_training.losses(device)

print(json.dumps({"nodes": nodes, "forward": forward, "outside": outside, "passes": passes, "losses": losses, "graphs": graphs}))
