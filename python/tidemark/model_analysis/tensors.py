"""What analyses know of each parameter and buffer."""

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
    #: Of the module that has it; ``""`` for the model itself.
    module: str
    #: ``"parameter"``, ``"buffer"``, or ``"packed"``: a weight that torch's quantized layers keep out of reach of optimizers.
    kind: str
    #: Of the whole tensor: on all ranks, and before packing.
    shape: tuple[int, ...]
    #: ``"float32"``
    dtype: str
    #: ``"cuda:0"``
    device: str
    trainable: bool
    #: Numbers in it, on all ranks, without those that another tensor has counted.
    elements: int
    #: What this process holds of it, without what another tensor has counted. On the meta device: what it would take.
    bytes: int
    #: What all ranks hold of it together, replicas once; the same as ``bytes`` where it is not sharded.
    global_bytes: int
    #: Scales and the like, part of ``bytes``.
    quantization_state_bytes: int
    quantized: str | None
    sharded: str | None
    #: The tensor that counted the bytes which both have; ``None`` where they are its own.
    shared_with: str | None
    #: Of its ``.grad``; ``None`` where it has none.
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
    """The facts of one tensor. Raises what reading the tensor raises."""
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
        return None  # asking for its gradient would warn
    gradient = tensor.grad
    return None if gradient is None else sum(byte_length(part) for part in take_apart(gradient).holders)
