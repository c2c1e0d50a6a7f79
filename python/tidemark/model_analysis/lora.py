"""The share of LoRA adapters in a model, and the modules that they adapt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tidemark.model_analysis.tensors import TensorFacts

#: `MODULE.lora_A.ADAPTER.weight` (PEFT), `MODULE.lora_A.weight` (adapter files), `MODULE.lora_A` (loralib) and PEFT's others.
_ADAPTER = re.compile(
    r"^(?:(?P<module>.+)\.)?lora_(?P<part>embedding_A|embedding_B|magnitude_vector|A|B)(?:\.(?P<adapter>.+?))??(?:\.(?:weight|bias))?$"
)


@dataclass
class AdaptedModule:
    """A module with an adapter."""

    module: str
    adapter: str  #: ``"default"``; ``""`` if the adapter has no name
    rank: int | None = None
    alpha: float | None = None
    parameters: int = 0
    bytes: int = 0
    #: Number in the adapted weight; ``None`` if it is missing, as in an adapter's file.
    base_parameters: int | None = None
    base_bytes: int | None = None


@dataclass
class LoraFacts:
    """All adapters of a model."""

    modules: list[AdaptedModule] = field(default_factory=list)
    parameters: int = 0
    bytes: int = 0
    #: Parameters that are not in an adapter.
    base_parameters: int = 0
    base_bytes: int = 0
    base_trainable_parameters: int = 0
    #: Adapter parameters that an optimizer would not train.
    frozen_parameters: int = 0

    @property
    def share_percent(self) -> float | None:
        """Adapter parameters in percent of the base's; ``None`` without a base."""
        return 100.0 * self.parameters / self.base_parameters if self.base_parameters else None

    @property
    def bytes_by_rank(self) -> dict[int, int]:
        """Bytes of adapters of each rank; adapters of unknown rank are left out."""
        by_rank: dict[int, int] = {}
        for module in self.modules:
            if module.rank is not None:
                by_rank[module.rank] = by_rank.get(module.rank, 0) + module.bytes
        return dict(sorted(by_rank.items()))

    @property
    def target_modules(self) -> dict[str, int]:
        """The number of adapted modules with each name: ``{"q_proj": 32, "v_proj": 32}``."""
        counts: dict[str, int] = {}
        for module in {module.module for module in self.modules}:
            name = module.rpartition(".")[2]
            counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items()))

    @property
    def larger_than_base(self) -> list[AdaptedModule]:
        """Modules with an adapter that has at least as many parameters as the adapted weight: training the weight itself would
        cost no more.
        """
        return [module for module in self.modules if module.base_parameters and module.parameters >= module.base_parameters]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "parameters": self.parameters,
            "bytes": self.bytes,
            "base_parameters": self.base_parameters,
            "base_bytes": self.base_bytes,
            "share_percent": self.share_percent,
            "base_trainable_parameters": self.base_trainable_parameters,
            "frozen_parameters": self.frozen_parameters,
            "bytes_by_rank": {str(rank): size for rank, size in self.bytes_by_rank.items()},
            "target_modules": self.target_modules,
            "modules": [asdict(module) for module in self.modules],
        }


def find_adapters(tensors: Iterable[TensorFacts], modules: dict[str, Any]) -> LoraFacts | None:
    """The adapters among a model's parameters; ``None`` if there is none. ``modules``: by path, to read alpha."""
    facts = LoraFacts()
    adapted: dict[tuple[str, str], AdaptedModule] = {}
    others: dict[str, TensorFacts] = {}
    for tensor in tensors:
        match = _ADAPTER.match(tensor.name)
        if match is None:
            others[tensor.name] = tensor
            facts.base_parameters += tensor.elements
            facts.base_bytes += tensor.bytes
            facts.base_trainable_parameters += tensor.elements if tensor.trainable else 0
            continue
        module, adapter = match["module"] or "", match["adapter"] or ""
        entry = adapted.setdefault((module, adapter), AdaptedModule(module, adapter))
        entry.parameters += tensor.elements
        entry.bytes += tensor.bytes
        if match["part"] in ("A", "embedding_A") and tensor.shape:
            entry.rank = tensor.shape[0]
        facts.parameters += tensor.elements
        facts.bytes += tensor.bytes
        facts.frozen_parameters += 0 if tensor.trainable else tensor.elements
    if not adapted:
        return None
    facts.modules = list(adapted.values())
    for entry in facts.modules:
        base = others.get(f"{entry.module}.base_layer.weight") or others.get(f"{entry.module}.weight")
        if base is not None:
            entry.base_parameters, entry.base_bytes = base.elements, base.bytes
        entry.alpha = _alpha(modules.get(entry.module), entry.adapter)
    return facts


def _alpha(module: Any, adapter: str) -> float | None:
    """In PEFT by adapter, in loralib a number."""
    alpha = getattr(module, "lora_alpha", None)
    if isinstance(alpha, dict):
        alpha = alpha.get(adapter)
    return float(alpha) if isinstance(alpha, (int, float)) else None
