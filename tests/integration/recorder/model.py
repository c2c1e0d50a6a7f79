"""Trains a small model with every kind of module, and writes their properties to the file in its argument, as JSON.

Prints nothing that differs from run to run: losses bit for bit, and how often its own code was called. A Probe allocates a unique number
of bytes, so that its calls can be found in a recording.
"""

import json
import os
import sys
import threading

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
said = {"modules": {}, "tensors": {}, "gradients": [], "states": [], "probes": {}, "same_address": 0, "thread": 0}
calls = {"getattr": 0, "torch_function": 0}


class Probe(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        torch.empty(self.size, dtype=torch.uint8)
        return x


class Other(Probe):
    pass


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(9, 9)
        self.probe = Probe(size)

    def forward(self, x):
        return self.probe(torch.relu(self.linear(x)))


class Counted(nn.Parameter):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        calls["torch_function"] += 1
        return super().__torch_function__(function, types, args, kwargs or {})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(5001), Block(5002)])
        self.again = self.layers[0]  # called under two names, and known by the first
        self.norm = nn.BatchNorm1d(9)
        self.scripted = torch.jit.script(nn.Linear(9, 9))
        self.tied = nn.Linear(9, 9)
        self.tied.weight = self.layers[1].linear.weight
        self.scale = Counted(torch.ones(9))
        self.meta = nn.Linear(9, 9, device="meta")
        self.nothing = None
        self.frozen = nn.Parameter(torch.ones(2, 5, dtype=torch.float64)[:, 1:3], requires_grad=False)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.tied(self.scripted(self.norm(self.again(x)))) * self.scale


class Hostile(nn.Module):
    """Every access to its attributes fails."""

    def __init__(self):
        super().__init__()
        self.probe = Probe(5003)

    def forward(self, x):
        return self._modules["probe"](x)

    def __getattr__(self, name):
        calls["getattr"] += 1
        raise RuntimeError(name)

    def named_modules(self, *args, **kwargs):
        raise RuntimeError("named_modules")

    named_parameters = named_children = parameters = modules = children = named_modules


def place(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return [storage.data_ptr(), storage.nbytes(), tensor.numel() * tensor.element_size(),
            str(tensor.dtype).replace("torch.", ""), list(tensor.shape), tensor.requires_grad]  # fmt: skip


def say(root):
    """A root module, described by its own methods."""
    for name, module in root.named_modules():
        said["modules"][name] = [id(module), f"{type(module).__module__}.{type(module).__qualname__}"]
    for role, named in (("parameter", root.named_parameters()), ("buffer", root.named_buffers())):
        for name, tensor in named:
            if tensor.device.type != "meta":
                said["tensors"][name] = [role, *place(tensor)]


net, embedding = Net(), nn.Embedding(10, 9, sparse=True)
trained = [(name, parameter) for name, parameter in net.named_parameters() if not parameter.is_meta]
adam = torch.optim.Adam([parameter for _, parameter in trained if parameter.requires_grad], lr=0.01)
sgd = torch.optim.SGD(embedding.parameters(), lr=0.1, momentum=0.5)
for step in range(9):
    x = embedding(torch.arange(6) % 4 + step % 3)
    loss = net(x).square().mean()
    loss.backward()
    adam.step()
    said["gradients"].append({name: place(p.grad)[:5] for name, p in trained if p.grad is not None})
    said["states"].append(
        {f"{name} {key}": place(t)[:5] for name, p in trained for key, t in adam.state.get(p, {}).items() if torch.is_tensor(t)}
    )
    said["gradients"][-1]["embedding values"] = place(embedding.weight.grad._values())[:5]
    sgd.step()
    print(loss.item().hex())
    for optimizer in (adam, sgd):
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
say(net)
for layer, size in (("layers.0", 5001), ("layers.1", 5002)):
    said["probes"][size] = ["", layer, layer + ".probe"]

hostile = Hostile()
hostile(torch.ones(1))
said["probes"][5003] = ["", "probe"]

# One module after the other at the same address. Both are outermost ones.
made, index = [None] * 10000, 0
first = Probe(5004)
first(torch.ones(1))
address = id(first)
del first
while id(second := Other.__new__(Other)) != address:
    made[index] = second
    index += 1
second.__init__(5005)
said["same_address"] = address
second(torch.ones(1))

# From other threads: a module that is known by then, and one that no other thread sees.
alone = Probe(5006)
said["thread"] = id(alone)
for work in (lambda: net.layers[1](torch.ones(1, 9)), lambda: alone(torch.ones(1))):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

child = os.fork()
if child == 0:
    with torch.no_grad():
        net.layers[1](torch.ones(1, 9))
        net(torch.ones(2, 9))
    os._exit(0)
os.waitpid(child, 0)
print(calls)
with open(sys.argv[1], "w") as file:
    json.dump(said, file)
