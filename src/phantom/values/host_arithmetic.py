# Calls PyTorch's operators for the CPU on device memory. Runs inside the planned program, on a thread of its own, with the GIL:
# host_arithmetic.cpp starts it. Nothing that it does may be seen by the program.
from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional, Tuple

    # (memory or None, type, sizes, strides), as made by host_arithmetic.cpp.
    Described = Tuple[Optional[memoryview], int, Tuple[int, ...], Tuple[int, ...]]

# Their first argument only receives values.
OVERWRITING = {
    *("copy_", "fill_", "zero_", "_foreach_zero_", "_foreach_copy_"),
    *("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"),
}

# They take memory, or describe it otherwise, and leave its content.
WITHOUT_VALUES = {
    *("empty", "empty_strided", "resize_", "resize_as_", "set_"),
    *("record_stream", "_efficientzerotensor", "is_pinned", "_pin_memory"),
}

# They copy this argument to the host.
DELIVERED = {"aten::copy_": 1, "aten::_local_scalar_dense": 0}

# With a number: an unknown value is compared as zero.
COMPARISONS = {"ge": 1, "gt": 2, "le": 3, "lt": 4}

# Operators of these libraries are made of others, or move bytes with NCCL.
OTHER_NAMESPACES = {"c10d", "_c10d_functional", "_c10d_functional_autograd", "profiler", "rpc", "symm_mem"}

# Arguments that they change, although their schemas do not say so: running statistics.
CHANGED = {"cudnn_batch_norm": (3, 4), "native_batch_norm": (3, 4)}

# They change an argument only for values that are not finite, which a plan does not expect: GradScaler's found_inf.
UNCHANGED = {"_amp_foreach_non_finite_check_and_unscale_": (1,)}

# What the operator reads from the device: the number of elements of its result, or of true ones, or the result.
COUNTS: dict[str, Callable[[Any, list[Any]], int]] = {
    "nonzero": lambda result, _: result.size(0),
    "_unique2": lambda result, inputs: int(inputs[0].sum()) if "bool" in str(inputs[0].dtype) else result[0].size(0),
    "unique_consecutive": lambda result, _: result[0].size(0),
    "equal": lambda result, _: int(result),
}


class Operator:
    """An operator for the CPU, and how its arguments are passed."""

    def __init__(self, torch: Any, name: str, overload: str) -> None:
        self.function, _, tags = torch._C._get_operation_overload(name, overload)
        self.schema = torch._C._get_schema(name, overload)
        self.namespace, _, self.name = name.partition("::")
        self.full_name = f"{name}.{overload}" if overload else name
        self.names = [argument.name for argument in self.schema.arguments]
        self.positional = sum(not argument.kwarg_only for argument in self.schema.arguments)
        self.types = [i for i, argument in enumerate(self.schema.arguments) if "ScalarType" in str(argument.real_type)]
        self.generator = next(
            (i for i, argument in enumerate(self.schema.arguments) if "Generator" in str(argument.type)), None
        )
        self.random = torch.Tag.nondeterministic_seeded in tags
        self.failures = 0


class HostArithmetic:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.dtypes = {
            0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
            7: torch.float64, 11: torch.bool, 15: torch.bfloat16,
        }  # fmt: skip
        self.operators: list[Operator] = []
        self.begun: dict[int, Any] = {}
        self.generator = torch.Generator()
        self.generator.manual_seed(0)

    def describe(self, name: str, overload: str) -> tuple[int, ...]:
        """The fields of OperatorFacts."""
        torch = self.torch
        operator = Operator(torch, name, overload)
        arguments = operator.schema.arguments
        written = overwritten = out = 0
        for index, argument in enumerate(arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written |= 1 << index
                if argument.is_out:
                    out |= 1 << index
                if argument.is_out or (index == 0 and operator.name in OVERWRITING):
                    overwritten |= 1 << index
        for index in CHANGED.get(operator.name, ()):
            written |= 1 << index
        for index in UNCHANGED.get(operator.name, ()):
            written &= ~(1 << index)
        returns = operator.schema.returns
        makes = any("Tensor" in str(result.type) and result.alias_info is None for result in returns)
        on_device = torch._C._dispatch_has_kernel_for_dispatch_key(operator.full_name, "CUDA") or name == "aten::copy_"
        own = operator.namespace in ("aten", "torchvision", "prims")
        counts = operator.namespace == "aten" and operator.name in COUNTS and out == 0
        ignored = (
            operator.namespace in OTHER_NAMESPACES
            or (own and not on_device)
            or (not own and not written)
            or not (makes or written or counts or name in DELIVERED)
            or (operator.namespace == "aten" and operator.name in WITHOUT_VALUES)
        )
        computable = (
            own
            and not ignored
            and len(arguments) <= 63
            and (not operator.random or operator.generator is not None)
            and operator.name not in CHANGED
            and operator.name not in UNCHANGED
            and torch._C._dispatch_has_computed_kernel_for_dispatch_key(operator.full_name, "CPU")
        )
        self.operators.append(operator)
        return (
            *(len(self.operators) - 1, len(arguments), len(returns), written, overwritten, out, DELIVERED.get(name, -1)),
            COMPARISONS.get(operator.name, 0) if name.startswith("aten::") and overload == "Scalar" else 0,
            *(int(ignored), int(computable), int(name == "aten::zero_"), int(name == "aten::copy_"), int(counts)),
        )

    def tensor(self, described: Described) -> Any:
        memory, dtype, sizes, strides = described
        if memory is None:
            return self.torch.empty(sizes, dtype=self.dtypes[dtype])
        return self.torch.frombuffer(memory, dtype=self.dtypes[dtype]).as_strided(sizes, strides)

    def value(self, argument: Any) -> Any:
        if isinstance(argument, tuple):
            return self.tensor(argument)
        if isinstance(argument, list):
            return [self.value(item) for item in argument]
        return argument

    def call(self, operator: Operator, described: list[Any]) -> tuple[Any, list[Any]]:
        arguments = [self.value(argument) for argument in described]
        for index in operator.types:
            if arguments[index] is not None:
                arguments[index] = self.dtypes[arguments[index]]
        if operator.generator is not None:
            arguments[operator.generator] = self.generator
        count = operator.positional
        named = dict(zip(operator.names[count:], arguments[count:]))
        if "pin_memory" in named:
            named["pin_memory"] = None
        return operator.function(*arguments[:count], **named), arguments

    def store(self, result: Any, described: list[Described | None]) -> bool:
        results = list(self.flatten(result))
        if len(results) != len(described):
            return False
        pairs = [(one, self.tensor(other)) for one, other in zip(results, described) if other is not None]
        if any(one.shape != target.shape or one.dtype != target.dtype for one, target in pairs):
            return False
        for one, target in pairs:
            if one.data_ptr() != target.data_ptr():
                target.copy_(one)
        return True

    def flatten(self, result: Any) -> Any:
        if isinstance(result, self.torch.Tensor):
            yield result
        elif isinstance(result, (list, tuple)):
            for one in result:
                yield from self.flatten(one)

    def begin(self, number: int, described: list[Any], ticket: int) -> int:
        operator = self.operators[number]
        if operator.name == "_unique2" and self.dtypes[described[0][1]] == self.torch.bool:
            described[3] = True  # the GPU's returns the counts of truth values anyway
        result, arguments = self.call(operator, described)
        count = COUNTS[operator.name](result, arguments)
        self.begun[ticket] = result
        return count

    def finish(self, ticket: int, results: list[Described | None]) -> int:
        result = self.begun.pop(ticket, None)
        return int(result is not None and self.store(result, results))

    def compute(self, number: int, described: list[Any], results: list[Described | None]) -> int:
        operator = self.operators[number]
        if operator.failures > 3:
            return 0
        operator.failures += 1
        result, _ = self.call(operator, described)
        operator.failures = 0
        return int(self.store(result, results))


def start(open_at: int, observe_at: int, check_tensor_at: int, check_call_at: int, keep_at: int) -> None:
    """The arguments are addresses of C++ functions: open_torch(), observe_calls(), check_tensor(), check_call(), and one that
    keeps the functions that are called for operators.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "frombuffer"):
        return
    open_torch = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_char_p)(open_at)
    observe_calls = ctypes.PYFUNCTYPE(ctypes.c_int)(observe_at)
    check_tensor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(check_tensor_at)
    check_call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(check_call_at)
    keep = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.py_object] * 4)(keep_at)
    if not open_torch(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so").encode()):
        return
    torch.set_grad_enabled(False)  # of this thread
    known = torch.empty(5, 7, dtype=torch.float64)
    storage = known.untyped_storage()
    if not check_tensor(known._cdata, storage.data_ptr(), storage.nbytes()) or not observe_calls():
        return
    full, _, _ = torch._C._get_operation_overload("aten::full", "")
    result = full([2, 3], 2.5, dtype=torch.float32, layout=None, device=torch.device("cpu"), pin_memory=False)
    if check_call(result._cdata):
        arithmetic = HostArithmetic(torch)
        keep(arithmetic.describe, arithmetic.begin, arithmetic.finish, arithmetic.compute)
