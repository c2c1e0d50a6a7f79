# Sends the recorder the names of the program's modules, and the places of the tensors of its models and optimizers. Runs inside
# the program, with the GIL, on a thread of its own (script.h); model_script.cpp starts it. Only after_step() runs on the
# program's threads: it catches nothing, because exceptions in it come from the program's signal handlers.
#
# None of the program's own code runs here: attributes of modules are read from their __dict__, attributes of tensors below
# __torch_function__. Nothing is kept alive: modules are held by weak references.
from __future__ import annotations

import sys
import weakref
from struct import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    # Defined in model_script.cpp:
    def connection() -> int:
        """The number of the recording that the process writes; 0 if there is none."""
        ...

    def outermost_modules() -> list[object]:
        """The outermost module that each thread is calling."""
        ...

    def write_model(entries: bytes) -> int:
        """Writes entries of a ring::DefinitionKind::model. Returns whether they were written."""
        ...

    def modules_named(addresses: bytes) -> None:
        """Marks the names of these modules as sent to the recorder."""
        ...

    def module_freed(reference: object) -> None:
        """Reports a module as freed, by a weak reference with its address."""
        ...

    def has_audit_hooks() -> int:
        """Whether the program has audit hooks: no script may run then."""
        ...

    def names_are_due() -> int:
        """Whether the names must be sent again."""
        ...

    def send_optimizer(optimizer: object) -> None:
        """Calls send_optimizer_now() on the script's thread, and waits for it."""
        ...

    def quietly(function: Callable[..., Any], *arguments: Any) -> Any: ...  # of quiet.py


torch: Any = sys.modules["torch"]
Module: Any = sys.modules["torch.nn.modules.module"].Module
Tensor: Any = torch.Tensor
is_copy_on_write = getattr(torch._C, "_is_cow_tensor", lambda tensor: False)  # reading the address of one would copy it
storage_of = getattr(Tensor, "untyped_storage", None) or Tensor._storage

PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE = 1, 2, 3, 4  # ModelTensor::Role
DEVICES = {"cpu": 0, "cuda": 1, "hip": 6, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19, "privateuseone": 20}  # c10::DeviceType
MAX_BYTES = 1 << 18  # of one message


class Reference(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("address",)
    address: int


def text(string: object) -> bytes:
    data = str(string).encode("utf-8", "replace")
    return pack("<I", len(data)) + data


def attributes_of(thing: object) -> dict[str, Any]:
    try:
        found: dict[str, Any] = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found


def entries_of(module: object, attribute: str) -> list[tuple[str, Any]]:
    """Names and values of a module's _modules, _parameters or _buffers."""
    entries: Any = attributes_of(module).get(attribute)
    if issubclass(type(entries), dict):
        return [(name, value) for name, value in dict.items(entries) if value is not None]
    if type(entries).__module__ == "torch.jit._script":
        return [(name, value) for name, value in entries.items() if value is not None]
    return []


def tree_of(root: object) -> list[tuple[str, Any]]:
    """(path, module) of a module and all modules in it, in the order of named_modules()."""
    found, seen, todo = [], set(), [("", root)]
    while todo:
        path, module = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        found.append((path, module))
        prefix = path + "." if path else ""
        for name, child in reversed(entries_of(module, "_modules")):
            if issubclass(type(child), Module):
                todo.append((f"{prefix}{name}", child))
    return found


def tensors_in(value: Any, name: str, depth: int = 2) -> list[tuple[str, Any]]:
    """(key, tensor) of an optimizer's state for a parameter."""
    if issubclass(type(value), Tensor):
        return [(name, value)]
    if depth == 0:
        return []
    items: list[tuple[Any, Any]]
    if issubclass(type(value), dict):
        items = list(dict.items(value))
    elif issubclass(type(value), (list, tuple)):
        items = list(enumerate(value))
    else:
        return []
    return [found for key, part in items for found in tensors_in(part, f"{name}.{key}" if name else str(key), depth - 1)]


def storage_place(tensor: Any) -> tuple[int, int]:
    """(address, bytes) of a tensor's storage.

    In recent versions, a storage that has a Python object is not freed when the interpreter ends: therefore none is made for a
    contiguous tensor at offset 0. It counts as its whole storage, even if it is only the first part of a flat buffer.
    """
    begins = tensor.storage_offset() == 0
    if begins and (tensor.is_contiguous() or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last))):
        return tensor.data_ptr(), tensor.numel() * tensor.element_size()
    storage = storage_of(tensor)
    return storage.data_ptr(), storage.nbytes()


def stored(tensor: Any, depth: int = 2) -> list[tuple[Any, int, int]]:
    """(tensor, address, bytes of its storage); of the parts of a sparse or distributed tensor, which has no storage."""
    try:
        address, size = (0, 0) if is_copy_on_write(tensor) else storage_place(tensor)
        if address:
            return [(tensor, address, size)]
    except Exception:
        pass
    if depth == 0:
        return []
    parts = list(attributes_of(tensor).values())
    try:
        parts += [tensor._indices(), tensor._values()] if tensor.layout is torch.sparse_coo else []
        parts.append(object.__getattribute__(tensor, "_local_tensor"))  # DTensor
    except Exception:
        pass
    return [found for part in parts if issubclass(type(part), Tensor) for found in stored(part, depth - 1)]


class Message:
    """Entries for write_model()."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.size, self.complete = 0, True

    def add(self, entry: bytes) -> None:
        self.entries.append(entry)
        self.size += len(entry)
        if self.size > MAX_BYTES:
            self.send()

    def send(self) -> None:
        if self.entries:
            self.complete = bool(write_model(b"".join(self.entries))) and self.complete
        self.entries, self.size = [], 0


class Model:
    """The data sent in one recording, by address."""

    def __init__(self) -> None:
        self.connection = 0
        # Address of a module -> (weak reference, path, address of its outermost module)
        self.modules: dict[int, tuple[Reference, str, int]] = {}
        # (address of a module, role, name, state, part) -> (storage, its bytes, whether it is trained)
        self.tensors: dict[tuple[int, int, str, str, int], tuple[int, int, bool]] = {}
        self.roots: list[Callable[[], Any]] = []
        self.dtypes: dict[object, bytes] = {}

    def add_tensor(
        self,
        message: Message,
        role: int,
        tensor: Any,
        owner: int,
        name: str,
        state: str = "",
        requires_grad: bool = False,
        always: bool = False,
    ) -> None:
        for part, (piece, address, size) in enumerate(stored(tensor)):
            try:
                device = piece.device
                key, place = (owner, role, name, state, part), (address, size, requires_grad)
                if not always and self.tensors.get(key) == place:
                    continue
                kind = DEVICES.get(device.type)
                if kind is None:
                    continue
                dtype = piece.dtype
                if dtype not in self.dtypes:
                    self.dtypes[dtype] = text(str(dtype).rpartition(".")[2])
                shape = tuple(piece.shape)
                index = (device.index or 0) if kind else 0
                used = piece.numel() * piece.element_size()
                message.add(
                    pack("<BBbbBQQQQ", 2, role, kind, index, requires_grad, address, size, used, owner)
                    + text(name)
                    + text(state)
                    + self.dtypes[dtype]
                    + pack(f"<B{len(shape)}Q", len(shape), *shape)
                )
                if owner:
                    self.tensors[key] = place
            except Exception:
                continue

    def add_module(self, message: Message, module: Any, path: str, root: object) -> bool:
        """Whether it is new."""
        address = id(module)
        known = self.modules.get(address)
        is_known = known is not None and known[0]() is module
        if known is not None and is_known and known[1:] == (path, id(root)):
            return False
        reference = known[0] if known is not None and is_known else Reference(module, module_freed)
        reference.address = address
        name = type.__getattribute__(type(module), "__module__"), type.__getattribute__(type(module), "__qualname__")
        message.add(pack("<BQQ", 1, address, id(root)) + text(path) + text(".".join(map(str, name))))
        self.modules[address] = reference, path, id(root)
        return not is_known

    def send_modules(self) -> dict[int, tuple[int, str]] | None:
        """Sends new modules. Returns {id(parameter): (address of its module, name)}; None if that is impossible now."""
        number = connection()
        if number == 0:
            return None
        if number != self.connection:  # also in a forked child
            self.__init__()  # type: ignore[misc]
            self.connection = number
        for address in [address for address, known in list(self.modules.items()) if known[0]() is None]:
            del self.modules[address]
            for key in [key for key in self.tensors if key[0] == address]:
                del self.tensors[key]
        candidates = [root for root in (reference() for reference in self.roots) if root is not None]
        candidates += [module for module in outermost_modules() if issubclass(type(module), Module)]
        trees = {id(candidate): tree_of(candidate) for candidate in candidates}
        inside = {id(module) for tree in trees.values() for _, module in tree[1:]}
        roots = [tree for address, tree in trees.items() if address not in inside]
        self.roots = [weakref.ref(tree[0][1]) for tree in roots]
        message = Message()
        seen: set[int] = set()
        new: list[int] = []
        owners: dict[int, tuple[int, str]] = {}
        for tree in roots:
            for path, module in tree:
                if id(module) in seen:  # also in another root
                    continue
                seen.add(id(module))
                if self.add_module(message, module, path, tree[0][1]):
                    new.append(id(module))
                for role, attribute in ((PARAMETER, "_parameters"), (BUFFER, "_buffers")):
                    for name, tensor in entries_of(module, attribute):
                        if id(tensor) in owners or not issubclass(type(tensor), Tensor):  # tied: the first one counts
                            continue
                        owners[id(tensor)] = id(module), name
                        self.add_tensor(message, role, tensor, id(module), name, "", tensor.requires_grad)
        message.send()
        if message.complete:
            modules_named(pack(f"{len(new)}Q", *new))
        else:
            self.connection = 0  # send everything again next time
        return owners

    def send_optimizer(self, optimizer: object) -> None:
        owners = self.send_modules()
        if owners is None:
            return
        message = Message()
        attributes = attributes_of(optimizer)
        states: Any = attributes.get("state")
        for group in list(attributes.get("param_groups") or ()):
            for parameter in list(group["params"]):
                if not issubclass(type(parameter), Tensor):
                    continue
                owner, name = owners.get(id(parameter), (0, ""))
                gradient = parameter.grad
                if gradient is not None:
                    self.add_tensor(message, GRADIENT, gradient, owner, name, "", parameter.requires_grad, always=True)
                state: Any = dict.get(states, parameter) if issubclass(type(states), dict) else None
                for key, tensor in tensors_in(state, ""):
                    self.add_tensor(message, OPTIMIZER_STATE, tensor, owner, name, key, parameter.requires_grad)
        message.send()


model = Model()
steps: dict[int, tuple[weakref.ref[Any], int]] = {}  # id(optimizer) -> (weak reference, steps that it has made)


def after_step(self: Any, *_: object) -> None:
    """Called after every optimizer's step, on any thread. torch.profiler of 1.13 passes it as `self`."""
    if has_audit_hooks():
        return
    known = steps.get(id(self))
    count = known[1] + 1 if known is not None and known[0]() is self else 1
    steps[id(self)] = weakref.ref(self), count
    if count & (count - 1) and count != 3 and not names_are_due():
        return
    send_optimizer(self)


def send_optimizer_now(optimizer: object) -> None:
    quietly(model.send_optimizer, optimizer)


def watch_optimizers() -> None:
    optim: Any = sys.modules["torch.optim.optimizer"]
    if hasattr(optim, "register_optimizer_step_post_hook"):
        after_step._torchdynamo_disable = True  # type: ignore[attr-defined]  # if step() is compiled
        optim.register_optimizer_step_post_hook(after_step)
    else:
        optim.Optimizer._optimizer_step_code = after_step


def run() -> bool:
    """Whether to run again."""
    return quietly(model.send_modules) is None


watch_optimizers()
