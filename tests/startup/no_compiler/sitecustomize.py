"""Python runs this file when it starts a program of a page: programs start in half of the time. Optimizers import
torch._dynamo when they are made, the compiler with all that it needs; here it is imported when a program asks for more of
it than those do that compile nothing. The garbage collector looks less often through what imports make (tests/startup).
"""

import gc
import importlib.util
import sys
import types

gc.set_threshold(100_000)
NAME = "torch._dynamo"


class Postponed(types.ModuleType):
    """torch._dynamo, until something of it is needed."""

    # What torch.distributed, DistributedDataParallel and torch.utils.checkpoint ask of it where nothing is compiled.
    trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)
    utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
    config = types.SimpleNamespace(error_on_nested_fx_trace=True)

    def __init__(self):
        super().__init__(NAME)
        torch = importlib.util.find_spec("torch")
        self.__path__ = [f"{folder}/_dynamo" for folder in torch.submodule_search_locations] if torch else []

    @staticmethod
    def disable(function=None, *_, **__):
        return function or (lambda function: function)

    @staticmethod
    def graph_break(*_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


sys.modules[NAME] = Postponed()
