"""Reported situations, each as a function that trains or evaluates a small model. docs/reports.md has the right answer for each.

Each runs in a process of its own, which is forked once PyTorch is loaded. The last line is JSON: name and pid of each.
"""

import copy
import functools
import gc
import json
import os
import random
import tempfile

import torch
import torch._dynamo  # which optimizers and checkpoint load: once, before the processes part
from forked import run_alone
from torch import nn


def mlp(*widths):
    layers = [part for one, other in zip(widths, widths[1:]) for part in (nn.Linear(one, other, device="cuda"), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def batch(*shape):
    return torch.randn(*shape, device="cuda")


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def total_loss():
    model = mlp(256, 1024, 256)
    optimizer = torch.optim.Adam(model.parameters())
    total = 0
    for _ in range(60):
        loss = model(batch(512, 256)).square().mean()
        update(optimizer, loss)
        total = total + loss


def collected_predictions():
    model = mlp(256, 1024, 4096)
    optimizer = torch.optim.Adam(model.parameters())

    def evaluate():
        predictions = []
        with torch.no_grad():
            for _ in range(100):
                predictions.append(model(batch(512, 256)))
        return torch.cat(predictions).argmax(-1)

    for _ in range(2):
        for _ in range(10):
            update(optimizer, model(batch(512, 256)).square().mean())
        evaluate()


def best_states():
    model = mlp(1024, 1024, 1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = []
    for _ in range(20):
        for _ in range(5):
            update(optimizer, model(batch(64, 1024)).square().mean())
        best.append(copy.deepcopy(model.state_dict()))


def attached_generator():
    generator, discriminator = mlp(64, 1024, 1024), mlp(1024, 256, 1)
    of_generator = torch.optim.Adam(generator.parameters())
    of_discriminator = torch.optim.Adam(discriminator.parameters())
    for _ in range(6):
        generated = generator(batch(2048, 64))
        update(of_discriminator, discriminator(batch(2048, 1024)).mean() - discriminator(generated).mean())
        update(of_generator, discriminator(generator(batch(512, 64))).mean())


def replay_buffer():
    model = mlp(64, 256, 4)
    optimizer = torch.optim.Adam(model.parameters())
    buffer = torch.empty(0, 84 * 84, device="cuda")
    for _ in range(80):
        frames = batch(32, 84 * 84)
        buffer = torch.cat([buffer, frames])
        update(optimizer, model(buffer[:64, :64]).square().mean())


def random_lengths():
    random.seed(1)
    model = nn.Sequential(nn.Embedding(8192, 512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(80):
        tokens = torch.randint(0, 8192, (16, random.randrange(32, 1024))).cuda()
        update(optimizer, model(tokens).square().mean())


def hidden_state():
    cell = nn.Linear(256, 256, device="cuda")
    hidden = torch.zeros(64, 256, device="cuda")
    for _ in range(50):
        inputs = batch(64, 256)
        hidden = torch.tanh(cell(hidden) + inputs)
        cell.zero_grad()
        hidden.square().mean().backward(retain_graph=True)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs):
        ctx.inputs = inputs
        ctx.output = inputs * inputs  # a cycle: the output refers to the function, which refers to the output
        return ctx.output

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.inputs * gradient


def function_attributes():
    gc.disable()
    model = nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        update(optimizer, Square.apply(model(batch(512, 1024))).sum())


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32000, 256)
        self.body = nn.Linear(256, 256)
        self.head = nn.Linear(256, 32000, bias=False)

    def forward(self, tokens):
        return self.head(torch.relu(self.body(self.embedding(tokens)))).float()


def all_logits():
    model = LanguageModel().cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        tokens = torch.randint(0, 32000, (4096,)).cuda()
        update(optimizer, nn.functional.cross_entropy(model(tokens), tokens))


def loaded_checkpoint():
    model = mlp(2048, 2048, 2048, 2048)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), folder + "/model.pt")
        state = torch.load(folder + "/model.pt")
    model.load_state_dict(state)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        update(optimizer, model(batch(64, 2048)).square().mean())


class Batch:
    pass


def cyclic_batches():
    gc.disable()
    model = nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        one = Batch()
        one.inputs = batch(1024, 1024)
        one.itself = one
        update(optimizer, model(one.inputs).square().mean())


class Mask:
    @functools.cache  # noqa: B019
    def mask(self, size, step):
        return torch.ones(size, size, device="cuda").tril()


def cached_masks():
    model = nn.Linear(1024, 1024, device="cuda")
    masks = Mask()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        update(optimizer, (model(batch(256, 1024)) @ masks.mask(1024, step)).square().mean())


def metric_of_all_steps():
    model = nn.Linear(512, 1000, device="cuda")
    optimizer = torch.optim.Adam(model.parameters())
    predictions = []
    for _ in range(60):
        output = model(batch(256, 512))
        update(optimizer, output.square().mean())
        predictions.append(output.detach())


def growing_key_cache():
    projection = nn.Linear(1024, 1024, device="cuda")
    with torch.no_grad():
        keys = torch.empty(8, 0, 1024, device="cuda")
        for _ in range(400):
            query = batch(8, 1, 1024)
            new = projection(query)
            keys = torch.cat([keys, new], 1)
            (query @ keys.transpose(1, 2)).softmax(-1)


def average_of_weights():
    model = mlp(2048, 2048, 2048, 2048)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        update(optimizer, model(batch(4096, 2048)).square().mean())
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters()):
                mean.lerp_(parameter, 0.001)


def first_optimizer_step():
    model = mlp(*[2048] * 9)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        update(optimizer, model(batch(64, 2048)).square().mean())


def gradients_of_all_steps():
    model = nn.Linear(2048, 2048, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(40):
        update(optimizer, model(batch(64, 2048)).square().mean())
        history.append([parameter.grad.clone() for parameter in model.parameters()])


def gradients_of_inputs():
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 3, 3, padding=1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = [batch(8, 3, 128, 128).requires_grad_() for _ in range(40)]
    for image in images:
        update(optimizer, model(image).square().mean())


def losses_of_eight_batches():
    model = mlp(512, 2048, 512)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        total = 0
        for _ in range(8):
            total = total + model(batch(2048, 512)).square().mean()
        update(optimizer, total)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))

    def forward(self, hidden):
        weights = torch.softmax(self.queries(hidden) @ self.keys(hidden).transpose(1, 2) / 8, -1)
        return hidden + weights @ self.values(hidden)


def attention_by_hand():
    model = nn.Sequential(*(Attention(64) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        update(optimizer, model(batch(4, 1024, 64)).square().mean())


SITUATIONS = [
    total_loss,
    collected_predictions,
    best_states,
    attached_generator,
    replay_buffer,
    random_lengths,
    hidden_state,
    function_attributes,
    all_logits,
    loaded_checkpoint,
    cyclic_batches,
    cached_masks,
    metric_of_all_steps,
    growing_key_cache,
    average_of_weights,
    first_optimizer_step,
    gradients_of_all_steps,
    gradients_of_inputs,
    losses_of_eight_batches,
    attention_by_hand,
]


def run(number):
    SITUATIONS[number]()
    return os.getpid()


if __name__ == "__main__":
    print(json.dumps({SITUATIONS[number].__name__: run_alone(run, number) for number in range(len(SITUATIONS))}), flush=True)
    os._exit(0)
