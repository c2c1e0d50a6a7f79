"""As ../sitecustomize.py, for programs that compile nothing: they start in half of the time. What PyTorch imports for its compiler
alone is imported here when a program asks for more of it than those do. Optimizers import torch._dynamo when they are made, the
compiler with all that it needs; PyTorch itself imports torch.export and what the meta device and fake tensors need beyond C++:
an operation that misses that raises NotImplementedError.
"""

import importlib
import importlib.util
import runpy
import sys
import types
from pathlib import Path


class Postponed(types.ModuleType):
    """A module of torch, until something of it is needed."""

    def __init__(self, name):
        super().__init__(name)
        torch = importlib.util.find_spec("torch")
        folder = name.removeprefix("torch.").replace(".", "/")
        self.__path__ = [f"{place}/{folder}" for place in torch.submodule_search_locations or []] if torch else []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class Dynamo(Postponed):
    # What torch.distributed, DistributedDataParallel and torch.utils.checkpoint ask of it where nothing is compiled.
    trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)
    utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    config = types.SimpleNamespace(error_on_nested_fx_trace=True)

    @staticmethod
    def disable(function=None, *_, **__):
        return function or (lambda function: function)

    @staticmethod
    def graph_break(*_, **__):
        pass


runpy.run_path(str(Path(__file__).resolve().parents[1] / "sitecustomize.py"))
sys.modules["torch._dynamo"] = Dynamo("torch._dynamo")
for postponed in ("torch._meta_registrations", "torch.distributed._meta_registrations", "torch.export"):
    sys.modules[postponed] = Postponed(postponed)
