"""Allocates in every kind of Python code, and prints Python's own stacks as JSON: size in bytes -> frames.

A frame is [function, file, line], outermost first; the function as in a recording, qualified if Python has the qualified name.
The allocation and what looks at the stack are on one line each time.
"""

import asyncio
import functools
import json
import sys
import threading
import traceback

import torch

torch.set_num_threads(1)
seen = {}


def see(tensor, frame):
    frames = [
        (getattr(caller.f_code, "co_qualname", caller.f_code.co_name), caller.f_code.co_filename, line)
        for caller, line in traceback.walk_stack(frame)
    ]
    seen[tensor.numel()] = frames[::-1]



def größe_测试():
    see(torch.empty(1001, dtype=torch.uint8), sys._getframe())


def outer():
    def inner():
        see(torch.empty(1002, dtype=torch.uint8), sys._getframe())

    inner()


class Layer:
    def method(self):
        see(torch.empty(1003, dtype=torch.uint8), sys._getframe())

    @classmethod
    def of_class(cls):
        see(torch.empty(1004, dtype=torch.uint8), sys._getframe())

    @property
    def value(self):
        see(torch.empty(1005, dtype=torch.uint8), sys._getframe())

    def __del__(self):
        see(torch.empty(1006, dtype=torch.uint8), sys._getframe())


def generator():
    yield 1
    see(torch.empty(1007, dtype=torch.uint8), sys._getframe())
    yield from range(2)


async def coroutine():
    await asyncio.sleep(0)
    see(torch.empty(1008, dtype=torch.uint8), sys._getframe())


def recursive(depth):
    if depth > 0:
        return recursive(depth - 1)
    see(torch.empty(1009, dtype=torch.uint8), sys._getframe())


def in_handler():
    try:
        raise ValueError
    except ValueError:
        see(torch.empty(1010, dtype=torch.uint8), sys._getframe())


class Function(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        see(torch.empty(1011, dtype=torch.uint8), sys._getframe())
        return gradient * 2


größe_测试()
outer()
Layer().method()
Layer.of_class()
Layer().value
list(generator())
asyncio.run(coroutine())
recursive(40)
in_handler()
Function.apply(torch.ones(3, requires_grad=True)).sum().backward()
(lambda: see(torch.empty(1012, dtype=torch.uint8), sys._getframe()))()
list(map(lambda size: see(torch.empty(size, dtype=torch.uint8), sys._getframe()), [1013]))
functools.partial(see, frame=sys._getframe())(torch.empty(1014, dtype=torch.uint8))
exec(compile("\n\nsee(torch.empty(1015, dtype=torch.uint8), sys._getframe())", "<a string>", "exec"))
eval("see(torch.empty(1016, dtype=torch.uint8), sys._getframe())")
sorted([2, 1], key=lambda key: see(torch.empty(1016 + key, dtype=torch.uint8), sys._getframe()) or key)
thread = threading.Thread(target=lambda: see(torch.empty(1019, dtype=torch.uint8), sys._getframe()))
thread.start()
thread.join()
for line in range(2):
    see(torch.empty(1020, dtype=torch.uint8), sys._getframe())
recursive(300)
json.dump(seen, sys.stdout)
