"""Facts about each parameter and buffer, for analyses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tidemark._sizes import MIB
from tidemark._torch import byte_length
from tidemark.model_analysis.modules import NamedTensor
from tidemark.model_analysis.parts import short_dtype, take_apart
from tidemark.model_analysis.storages import StorageTally


@dataclass
class TensorFacts:
    """One parameter or buffer of a model."""

    #: Dotted, as in ``named_parameters()``.
    name: str
    #: Path of the module that has it; ``""`` for the model itself.
    module: str
    #: ``"parameter"``, ``"buffer"``, or ``"packed"``: a weight that torch's quantized layers hide from optimizers.
    kind: str
    #: Shape of the whole tensor: on all ranks, and before packing.
    shape: tuple[int, ...]
    #: ``"float32"``
    dtype: str
    #: ``"cuda:0"``
    device: str
    trainable: bool
    #: Number of elements, on all ranks, without those counted for another tensor.
    elements: int
    #: This process's share of its bytes, without those counted for another tensor. On the meta device: the size it would have.
    bytes: int
    #: Bytes on all ranks together, replicas once; equal to ``bytes`` if it is not sharded.
    global_bytes: int
    #: Scales and the like, part of ``bytes``.
    quantization_state_bytes: int
    quantized: str | None
    sharded: str | None
    #: The tensor for which shared bytes were counted; ``None`` if they are its own.
    shared_with: str | None
    #: Bytes of its ``.grad``; ``None`` if it has none.
    gradient_bytes: int | None

    @property
    def megabytes(self) -> float:
        """MiB of ``bytes``."""
        return self.bytes / MIB


@dataclass(frozen=True)
class UnreadTensor:
    """A parameter or buffer that could not be read, and is in no total."""

    name: str
    reason: str


def read_tensor(named: NamedTensor, tally: StorageTally) -> TensorFacts:
    """The facts of one tensor. Passes on exceptions of the tensor."""
    name, tensor = named.name, named.tensor
    parts = take_apart(tensor)
    if named.whole_shape is not None:
        parts = parts._replace(shape=named.whole_shape, sharded="FSDP")
    whole = math.prod(parts.shape)
    held = [tally.take(part, name) for part in parts.holders]
    state = sum(tally.take(part, name)[0] for part in parts.quantization_state)
    length = sum(byte_length(part) for part in parts.holders)
    new = sum(count for count, _ in held)
    shared_with = next((owner for _, owner in held if owner is not None and owner != name), None)
    elements = whole if shared_with is None or length == 0 else whole * new // length
    is_packed = parts.quantized is not None
    return TensorFacts(
        name=name,
        module=named.module,
        kind=named.kind,
        shape=parts.shape,
        dtype=short_dtype(tensor),
        device=str(tensor.device),
        trainable=named.kind == "parameter" and bool(tensor.requires_grad),
        elements=elements,
        bytes=new + state,
        global_bytes=elements * int(tensor.element_size()) if parts.sharded and not is_packed else new + state,
        quantization_state_bytes=state,
        quantized=parts.quantized,
        sharded=parts.sharded,
        shared_with=shared_with,
        gradient_bytes=_gradient_bytes(tensor),
    )


def _gradient_bytes(tensor: Any) -> int | None:
    if not getattr(tensor, "is_leaf", False):
        return None  # reading its gradient would warn
    gradient = tensor.grad
    return None if gradient is None else sum(byte_length(part) for part in take_apart(gradient).holders)
