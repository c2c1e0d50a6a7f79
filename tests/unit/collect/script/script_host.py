"""Runs a script of src/ like the library: in a separate dictionary, after quiet.py, with the functions of C++."""

import types
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[4] / "src"
SCRIPTS = SOURCES / "collect" / "process" / "script"


def run_script(name, **functions):
    """The script's names."""
    names = dict(functions)
    for script in ("quiet", name):
        path = SCRIPTS / f"{script}.py"
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), names)
    return names


class Tensor:
    """The attributes of a tensor used by the scripts."""

    def __init__(self, address=0, shape=(1,), element_size=4, offset=0, storage_bytes=None, device="cpu", contiguous=True):
        self.address, self.shape, self.size, self.offset = address, shape, element_size, offset
        self.device = types.SimpleNamespace(type=device, index=None)
        self.dtype, self.layout, self.grad, self.requires_grad = "torch.float32", "strided", None, True
        self.contiguous = contiguous
        self.storage_bytes = storage_bytes if storage_bytes is not None else self.numel() * element_size

    def numel(self):
        count = 1
        for length in self.shape:
            count *= length
        return count

    def element_size(self):
        return self.size

    def storage_offset(self):
        return self.offset

    def is_contiguous(self, memory_format=None):
        return self.contiguous

    def dim(self):
        return len(self.shape)

    def data_ptr(self):
        return self.address + self.offset * self.size

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.address, nbytes=lambda: self.storage_bytes)


class Module:
    """A module of torch.nn, with its __dict__."""

    def __init__(self, parameters=None, buffers=None, **children):
        self._modules, self._parameters, self._buffers = children, parameters or {}, buffers or {}


class Optimizer:
    def __init__(self, *parameters):
        self.param_groups, self.state = [{"params": list(parameters)}], {}


class WithoutTorchFunction:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def fake_torch():
    """sys.modules of a program that has imported PyTorch, and the hooks registered with its optimizers."""
    hooks = []
    core = types.SimpleNamespace(DisableTorchFunction=WithoutTorchFunction)
    torch = types.ModuleType("torch")
    torch.Tensor, torch._C, torch.sparse_coo, torch.channels_last = Tensor, core, "sparse", "channels_last"
    modules = types.ModuleType("torch.nn.modules.module")
    modules.Module = Module
    optimizers = types.ModuleType("torch.optim.optimizer")
    optimizers.register_optimizer_step_post_hook = hooks.append
    return {"torch": torch, "torch.nn.modules.module": modules, "torch.optim.optimizer": optimizers}, hooks
