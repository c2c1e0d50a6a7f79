"""The result of analyze_model: typed, and a dict in the format of the older tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark._sizes import MIB
from tidemark.model_analysis.groups import Group, ModuleNode, RepeatedBlocks
from tidemark.model_analysis.issues import Issue
from tidemark.model_analysis.lora import LoraFacts
from tidemark.model_analysis.tensors import TensorFacts, UnreadTensor


@dataclass(frozen=True)
class ModelFacts:
    """The facts of the analysis; sizes are bytes, and those of this process if a model is sharded."""

    name: str
    #: Parameters and buffers, each under its first name.
    tensors: list[TensorFacts]
    #: Tensors that could not be read, and the reasons.
    unread: list[UnreadTensor]
    #: Modules with subtotals, the model itself at the top.
    tree: ModuleNode
    #: Blocks of lists (``model.layers.3``), else modules. They add up to the whole, as the next three lists do.
    layers: list[Group]
    dtypes: list[Group]
    devices: list[Group]
    shapes: list[Group]
    #: Runs of equal blocks.
    blocks: list[RepeatedBlocks]
    #: Names that share memory, the counted one first.
    tied: list[list[str]]
    #: From ``oversized_mb`` on, largest first.
    oversized: list[TensorFacts]
    oversized_mb: float
    #: ``None`` without adapters.
    lora: LoraFacts | None
    issues: list[Issue]


class ModelAnalysis(dict[str, Any]):
    """A model's memory by part. ``facts`` and the properties are typed; the same as a dict of plain values, with sizes in MB
    (MiB) if a key ends in ``_mb`` and else in bytes, is for older programs and ``json.dump``. Prints as a table.
    """

    def __init__(self, facts: ModelFacts, lang: str | None = None) -> None:
        self.facts = facts
        self._lang = lang
        super().__init__(self.to_dict())

    @property
    def parameters(self) -> list[TensorFacts]:
        """Without buffers."""
        return [tensor for tensor in self.facts.tensors if tensor.kind != "buffer"]

    @property
    def buffers(self) -> list[TensorFacts]:
        return [tensor for tensor in self.facts.tensors if tensor.kind == "buffer"]

    @property
    def total_params(self) -> int:
        """Numbers in all parameters, on all ranks, before packing, shared ones once."""
        return sum(tensor.elements for tensor in self.parameters)

    @property
    def trainable_params(self) -> int:
        return sum(tensor.elements for tensor in self.parameters if tensor.trainable)

    @property
    def param_efficiency(self) -> float | None:
        """Trainable parameters in percent of all; ``None`` for a model without parameters."""
        return 100.0 * self.trainable_params / self.total_params if self.total_params else None

    @property
    def parameter_bytes(self) -> int:
        """This process's share of the parameters (on the meta device: the size they would have)."""
        return sum(tensor.bytes for tensor in self.parameters)

    @property
    def buffer_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.buffers)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the existing gradients."""
        return sum(tensor.gradient_bytes or 0 for tensor in self.facts.tensors)

    @property
    def memory_mb(self) -> float:
        """MiB of the parameters."""
        return self.parameter_bytes / MIB

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: the content of the dict itself."""
        facts = self.facts
        parameters = self.parameters
        return {
            "name": facts.name,
            "memory_mb": self.memory_mb,
            "buffers_mb": self.buffer_bytes / MIB,
            "gradients_mb": self.gradient_bytes / MIB,
            "total_mb": (self.parameter_bytes + self.buffer_bytes) / MIB,
            "total_params": self.total_params,
            "trainable_params": self.trainable_params,
            "frozen_params": self.total_params - self.trainable_params,
            "param_efficiency": self.param_efficiency,
            "parameter_bytes": self.parameter_bytes,
            "trainable_bytes": sum(tensor.bytes for tensor in parameters if tensor.trainable),
            "buffer_bytes": self.buffer_bytes,
            "gradient_bytes": self.gradient_bytes,
            "params_with_gradients": sum(tensor.gradient_bytes is not None for tensor in parameters),
            "by_module": {node.path: node.total.bytes for node in self.modules()},
            "by_layer": _bytes_by_name(facts.layers),
            "by_dtype": _bytes_by_name(facts.dtypes),
            "by_device": _bytes_by_name(facts.devices),
            "by_shape": _bytes_by_name(facts.shapes),
            "repeated_blocks": [asdict(blocks) for blocks in facts.blocks],
            "tied": [list(names) for names in facts.tied],
            "oversized": [{"name": tensor.name, "memory_mb": tensor.megabytes} for tensor in facts.oversized],
            "oversized_threshold_mb": facts.oversized_mb,
            "lora": None if facts.lora is None else facts.lora.to_dict(),
            "quantized": _bytes_by_label(parameters, [tensor.quantized for tensor in parameters]),
            "quantization_state_bytes": sum(tensor.quantization_state_bytes for tensor in parameters),
            "sharded": _bytes_by_label(parameters, [tensor.sharded for tensor in parameters]),
            "global_bytes": sum(tensor.global_bytes for tensor in parameters),
            "meta_bytes": sum(tensor.bytes for tensor in parameters if tensor.device == "meta"),
            "unread": [asdict(unread) for unread in facts.unread],
            "issues": [asdict(issue) for issue in facts.issues],
        }

    def modules(self) -> list[ModuleNode]:
        """All modules that have tensors, in the order of the model."""
        found: list[ModuleNode] = []
        pending = [self.facts.tree]
        while pending:
            node = pending.pop()
            found.append(node)
            pending += reversed(node.children)
        return found

    def __str__(self) -> str:
        from tidemark.model_analysis.text import to_text

        return to_text(self, self._lang)

    def __repr__(self) -> str:
        return f"<ModelAnalysis of {self.facts.name}: {self.total_params:,} parameters, {self.memory_mb:.1f} MB>"

    def _repr_html_(self) -> str:
        from tidemark.model_analysis.text import to_html

        return to_html(self, self._lang)


def _bytes_by_name(groups: Sequence[Group]) -> dict[str, int]:
    return {group.name: group.bytes for group in groups}


def _bytes_by_label(tensors: Sequence[TensorFacts], labels: Sequence[str | None]) -> dict[str, int]:
    """Bytes of the tensors that have a label."""
    by_label: dict[str, int] = {}
    for tensor, label in zip(tensors, labels):
        if label is not None:
            by_label[label] = by_label.get(label, 0) + tensor.bytes
    return by_label
