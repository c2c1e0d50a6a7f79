"""Two more programs for each kind of fault in issue trackers, in other forms than those of situations.py, each with `fixed` without it.

Each runs in processes of its own, which are forked once PyTorch is loaded. The last line is JSON: of each run the name, whether it was
fixed, its pid, PyTorch's peak, and the program's own numbers of held memory. Programs of LOOK_ALIKES have no fault.
"""

import json
import os
import sys

import torch
import torch._dynamo  # which optimizers and checkpoint load: once, before the processes part
import torch.nn.functional as F
from forked import run_alone
from situations import batch, mlp, update
from torch import nn
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
LIMIT = 512 * MIB


def limit_memory():
    torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.get_device_properties(0).total_memory)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, hidden):
        return hidden + self.down(F.gelu(self.up(self.norm(hidden))))


def blocks(count=6, width=256):
    return nn.Sequential(*(Block(width) for _ in range(count))).cuda()


# Activations saved for a backward pass that never runs.


def generation_with_autograd(fixed):
    """One token after the other, chosen by argmax; trained before on short sequences."""
    model = nn.Sequential(nn.Embedding(4096, 256), *(Block(256) for _ in range(4)), nn.Linear(256, 4096)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        tokens = torch.randint(0, 4096, (8, 32)).cuda()
        update(optimizer, F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()))
    tokens = torch.randint(0, 4096, (32, 64)).cuda()
    for _ in range(16):
        with torch.set_grad_enabled(not fixed):
            logits = model(tokens)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
        del logits


class Distillation(nn.Module):
    """Teacher and student in one module; the loss is computed in it."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed
        self.teacher = blocks()
        self.student = blocks(2)

    def forward(self, inputs):
        with torch.set_grad_enabled(not self.fixed):
            target = self.teacher(inputs)
        return (self.student(inputs) - target.detach()).square().mean()


def teacher_in_the_model(fixed):
    model = Distillation(fixed)
    optimizer = torch.optim.AdamW(model.student.parameters())
    for _ in range(4):
        update(optimizer, model(batch(4096, 256)))


# A graph that a backward pass goes through although no optimizer uses its gradients.


def discriminator_on_attached(fixed):
    """The discriminator is trained on the generator's output, with the generator's graph."""
    generator, discriminator = mlp(64, 1024, 1024, 1024), mlp(1024, 256, 1)
    of_generator = torch.optim.Adam(generator.parameters())
    of_discriminator = torch.optim.Adam(discriminator.parameters())
    for _ in range(8):
        with torch.set_grad_enabled(not fixed):
            generated = generator(batch(4096, 64))
        loss = discriminator(batch(4096, 1024)).mean() - discriminator(generated).mean()
        update(of_discriminator, loss)
        del loss, generated
        update(of_generator, discriminator(generator(batch(1024, 64))).mean())


def probe_on_attached(fixed):
    """A classifier on the features of a model that is no longer trained, but whose parameters still require gradients."""
    backbone, head = blocks(), nn.Linear(256, 10).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(6):
        with torch.set_grad_enabled(not fixed):
            features = backbone(batch(4096, 256))
        update(optimizer, head(features).square().mean())
        del features


# Memory of several steps is freed together.


def rollouts(fixed):
    """Values with their graphs, kept for the five steps of an episode; advantages of them are reported at its end."""
    model = mlp(128, 512, 1024)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(8):
        values = []
        for _ in range(5):
            value = model(batch(2048, 128))
            update(optimizer, value.square().mean())
            advantage = value.exp().mean()
            values.append(advantage.item() if fixed else advantage)
            del advantage
        del value, values


def epoch_of_outputs(fixed):
    """Predictions of an epoch of ten steps, kept on the device for a metric."""
    model = mlp(128, 512, 2048)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        outputs = []
        for _ in range(10):
            output = model(batch(1024, 128))
            update(optimizer, output.square().mean())
            outputs.append(output.detach().cpu() if fixed else output.detach())
        del output
        [output.argmax(-1) for output in outputs]


# Causes that happened earlier.


def batch_halved_in_except(fixed):
    """A search for a batch size that tries the next one inside `except`."""
    limit_memory()
    model = blocks()

    def loss_of(size):
        return model(batch(size, 256)).square().mean()

    size, failed = 24576, False
    try:
        loss_of(size).backward()
    except torch.OutOfMemoryError:
        failed = True
        if not fixed:
            try:
                loss_of(size // 4).backward()
            except torch.OutOfMemoryError as error:
                print(error, file=sys.stderr)
    if fixed and failed:
        loss_of(size // 4).backward()


def embeddings_concatenated(fixed):
    """An index of embeddings that grows with each batch until memory runs out."""
    limit_memory()
    model = mlp(256, 512, 1024)
    parts, index = [], None
    try:
        with torch.no_grad():
            for _ in range(90):
                part = model(batch(1024, 256))
                if fixed:
                    parts.append(part.cpu())
                else:
                    index = part if index is None else torch.cat((index, part))
    except torch.OutOfMemoryError as error:
        print(error, file=sys.stderr)


# Checkpoints that save nothing.


def checkpoint_of_halves(fixed):
    model = blocks(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        hidden = batch(4096, 256).requires_grad_()
        for part in list(model) if fixed else [model[:4], model[4:]]:
            hidden = checkpoint(part, hidden, use_reentrant=False)
        update(optimizer, hidden.square().mean())


def reentrant_checkpoint(fixed):
    model = blocks(8)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        hidden = batch(4096, 256).requires_grad_()
        for part in list(model) if fixed else [model]:
            hidden = checkpoint(part, hidden, use_reentrant=True)
        update(optimizer, hidden.square().mean())


# Temporary tensors of optimizers for all parameters at once.


def foreach_nadam(fixed):
    model = mlp(*[1536] * 9)
    optimizer = torch.optim.NAdam(model.parameters(), foreach=not fixed)
    for _ in range(4):
        update(optimizer, model(batch(64, 1536)).square().mean())


def foreach_sgd(fixed):
    model = mlp(*[1536] * 9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1, fused=fixed or None)
    for _ in range(4):
        update(optimizer, model(batch(64, 1536)).square().mean())


# Leaks: growth in each step, as the program computes it.


def kept_by_a_hook(fixed):
    """Inputs of a layer, kept by a hook that should keep only the last ones: 2 MiB a step."""
    model, inputs = mlp(256, 512, 256), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def keep(module, arguments):
        if fixed:
            inputs.clear()
        inputs.append(arguments[0])

    model[2].register_forward_pre_hook(keep)
    for _ in range(40):
        update(optimizer, model(batch(1024, 256)).square().mean())
    return inputs[-1].nbytes


def state_continued(fixed):
    """A memory state that each step continues from the previous one, with its graph."""
    cell, head = nn.Linear(256, 256).cuda(), nn.Linear(256, 16).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    memory = torch.zeros(512, 256, device="cuda")
    for _ in range(40):
        memory = torch.tanh(cell(memory))
        if fixed:
            memory = memory.detach()
        update(optimizer, head(memory.detach()).square().mean())
    return memory.nbytes  # tanh keeps its result; the Linear's input is the previous state


def models_made_anew(fixed):
    """A new model in each round of a search; trained models are kept."""
    kept = []
    for _ in range(30):
        model = mlp(256, 512, 256)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        update(optimizer, model(batch(512, 256)).square().mean())
        kept.append(model)
        if fixed:
            kept.clear()
    return sum(2 * parameter.nbytes for parameter in model.parameters())


def update_by_hand(fixed):
    """No optimizer: parameters are changed by the loop. Losses are kept with their graphs."""
    layers, losses = [nn.Linear(256, 256).cuda() for _ in range(3)], []
    for _ in range(40):
        hidden = batch(512, 256)
        for layer in layers:
            hidden = torch.relu(layer(hidden))
        loss = hidden.square().mean()
        parameters = [parameter for layer in layers for parameter in layer.parameters()]
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters, retain_graph=True)):
            parameter.data.sub_(gradient, alpha=0.1)
        losses.append(loss.item() if fixed else loss)
    # The input, the results of relu, which are also inputs of the next layer, and the loss.
    return 512 * 256 * 4 * 4 + 512


PROGRAMS = [
    generation_with_autograd,
    teacher_in_the_model,
    discriminator_on_attached,
    probe_on_attached,
    rollouts,
    epoch_of_outputs,
    batch_halved_in_except,
    embeddings_concatenated,
    checkpoint_of_halves,
    reentrant_checkpoint,
    foreach_nadam,
    foreach_sgd,
    kept_by_a_hook,
    state_continued,
    models_made_anew,
    update_by_hand,
]


# Without a fault.


def frozen_backbone_below_adapters():
    """The frozen layers' activations are needed: the adapter is in front of them."""
    adapter, backbone = nn.Linear(256, 256).cuda(), blocks().requires_grad_(False)
    optimizer = torch.optim.SGD(adapter.parameters(), lr=0.1)
    for _ in range(6):
        update(optimizer, backbone(adapter(batch(2048, 256))).square().mean())


def generator_through_discriminator():
    """A generator's step needs the graph of the discriminator, whose gradients are unused in it."""
    generator, discriminator = mlp(64, 1024, 1024), mlp(1024, 256, 1)
    of_generator = torch.optim.Adam(generator.parameters())
    of_discriminator = torch.optim.Adam(discriminator.parameters())
    for _ in range(6):
        update(of_discriminator, discriminator(batch(2048, 1024)).mean() - discriminator(generator(batch(2048, 64)).detach()).mean())
        update(of_generator, discriminator(generator(batch(2048, 64))).mean())


def both_trained_by_one_loss():
    """Two optimizers, one backward pass."""
    encoder, decoder = mlp(256, 1024, 64), mlp(64, 1024, 256)
    optimizers = [torch.optim.Adam(encoder.parameters()), torch.optim.SGD(decoder.parameters(), lr=0.1)]
    for _ in range(6):
        inputs = batch(2048, 256)
        loss = (decoder(encoder(inputs)) - inputs).square().mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()


def accumulated_gradients():
    """An optimizer step for every five backward passes."""
    model = mlp(256, 1024, 256)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        for _ in range(5):
            (model(batch(1024, 256)).square().mean() / 5).backward()
        optimizer.step()
        optimizer.zero_grad()


def window_of_batches():
    """The last six batches, for a replay: each is freed six steps later, by itself."""
    model, window = mlp(256, 512, 256), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        window = [*window[-5:], batch(1024, 256)]
        update(optimizer, model(window[0]).square().mean())


def results_moved_to_the_host():
    """An evaluation whose results go to the CPU."""
    model = mlp(256, 1024, 1024)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        for _ in range(8):
            update(optimizer, model(batch(512, 256)).square().mean())
        with torch.no_grad():
            torch.cat([model(batch(512, 256)).cpu() for _ in range(40)]).argmax(-1)


LOOK_ALIKES = [
    frozen_backbone_below_adapters,
    generator_through_discriminator,
    both_trained_by_one_loss,
    accumulated_gradients,
    window_of_batches,
    results_moved_to_the_host,
]


def run(number, fixed):
    known = PROGRAMS[number](fixed) if number < len(PROGRAMS) else LOOK_ALIKES[number - len(PROGRAMS)]()
    return {"pid": os.getpid(), "peak": torch.cuda.max_memory_allocated(), "known": known}


if __name__ == "__main__":
    chosen = sys.argv[1:]
    runs = []
    for number, program in enumerate([*PROGRAMS, *LOOK_ALIKES]):
        for fixed in (False, True) if number < len(PROGRAMS) else (True,):
            if not chosen or program.__name__ in chosen:
                runs.append({"program": program.__name__, "fixed": fixed} | run_alone(run, number, fixed))
    print(json.dumps(runs), flush=True)
    os._exit(0)
