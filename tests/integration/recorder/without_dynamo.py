"""PyTorch's optimizers import torch._dynamo when they are made, to be left out of what is compiled: the compiler, Triton and SymPy with
it, which takes longer than all else that a small program does. A program that compiles nothing imports this module instead,
after torch; other programs of the tests have the real one.
"""

import sys
import types

import torch

sys.modules["torch._dynamo"] = torch._dynamo = types.SimpleNamespace(
    disable=lambda function, *_, **__: function, graph_break=lambda: None
)
