"""As ../sitecustomize.py, for programs that compile nothing: they start in half of the time. Modules that PyTorch imports only for its
compiler are imported here when a program uses more of them than such programs do. Optimizers import torch._dynamo when they are
made, the compiler with all that it needs; PyTorch itself imports torch.export, and in torch._meta_registrations the Python code of
the meta device and fake tensors: an operation without it raises NotImplementedError.
"""

import importlib
import importlib.util
import runpy
import sys
import types
from pathlib import Path


class Postponed(types.ModuleType):
    """A module of torch, loaded when something of it is needed."""

    def begin(self):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.load(), name)

    def load(self):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


class MetaRegistrations(Postponed):
    def begin(self):
        """Replaces PyTorch's own code: allows programs to make a torch.Generator."""
        core = sys.modules["torch._C"]
        if hasattr(core, "_set_generator_metaclass"):
            core._set_generator_metaclass(importlib.import_module("torch._custom_class_base").CustomClassBaseMeta)


class Dynamo(Postponed):
    # The attributes that torch.distributed, DistributedDataParallel, checkpoint and transformers use without compiling.
    trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)
    utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    config = types.SimpleNamespace(error_on_nested_fx_trace=True)

    @staticmethod
    def disable(function=None, *_, **__):
        return function or (lambda function: function)

    @staticmethod
    def graph_break(*_, **__):
        pass

    @staticmethod
    def allow_in_graph(function):
        return function

    assume_constant_result = allow_in_graph

    def load(self):
        """The compiler needs the others, which PyTorch has imported before it."""
        for other in [module for module in sys.modules.values() if type(module) in (Postponed, MetaRegistrations)]:
            other.load()
        return super().load()


class Finder:
    """Finds the postponed modules first on the path."""

    def __init__(self):
        self.kinds = {
            "torch._dynamo": Dynamo,
            "torch._meta_registrations": MetaRegistrations,
            "torch.distributed._meta_registrations": Postponed,
            "torch.export": Postponed,
        }

    def find_spec(self, name, path=None, target=None):
        kind = self.kinds.pop(name, None)  # the second time it is really imported
        if kind is None:
            return None
        spec = importlib.util.spec_from_loader(name, Loader(kind), is_package=True)
        spec.submodule_search_locations = [f"{folder}/{name.rpartition('.')[2]}" for folder in path]
        return spec


class Loader:
    def __init__(self, kind):
        self.kind = kind

    def create_module(self, spec):
        return self.kind(spec.name)

    def exec_module(self, module):
        module.begin()


runpy.run_path(str(Path(__file__).resolve().parents[1] / "sitecustomize.py"))
sys.meta_path.insert(0, Finder())
