"""Trains while the program interrupts itself: `interrupted.py handler|keyboard|audit`. Prints the exceptions.

The recorder's script reads the storage address of each parameter. These parameters then interrupt the process,
just as a timeout of signal.alarm() may interrupt anything: the program must get its handler's exceptions.
"""

import os
import signal
import sys

import torch
from torch import nn

STEPS = 40
raised = caught = asked = 0


class Timeout(Exception):
    pass


class Parameter(nn.Parameter):
    def storage_offset(self):
        global asked
        asked += 1
        os.kill(os.getpid(), signal.SIGUSR1)
        return super().storage_offset()


def raise_timeout(*_):
    global raised
    raised += 1
    raise Timeout if sys.argv[1] == "handler" else KeyboardInterrupt


def make_model():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    if sys.argv[1] != "audit":
        for layer in (model[0], model[2]):
            layer.weight = Parameter(layer.weight.detach())
    return model


def train():
    global caught
    models = []  # all stay: each new one must be named
    for _ in range(STEPS):
        try:
            models.append(make_model())
            optimizer = torch.optim.SGD(models[-1].parameters(), lr=0.1, momentum=0.9)
            for _ in range(3):
                models[-1](torch.ones(2, 4)).sum().backward()
                optimizer.step()
        except (Timeout, KeyboardInterrupt):
            caught += 1


def allow_no_code_of_others(event, arguments):
    """As a sandbox does: ends the process if foreign code is compiled, such as quiet.py, with which all scripts begin."""
    if event == "compile" and "def quietly" in str(arguments[0]):
        os.write(2, b"not allowed\n")
        os._exit(77)


if sys.argv[1] == "audit":
    sys.addaudithook(allow_no_code_of_others)
    train()
    print("trained")
else:
    signal.signal(signal.SIGUSR1, raise_timeout)
    train()
    # A signal sent while one is pending is merged with it.
    print("every one was caught" if raised == caught else f"{raised - caught} of {raised} were swallowed")
    print("asked" if asked else "never asked")
