"""tidemark.analyze_model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark._language import say
from tidemark._logging import package_logger
from tidemark._sizes import MIB
from tidemark._torch import require_torch
from tidemark.model_analysis.groups import group_by, layer_of, module_tree, repeated_blocks, shape_text
from tidemark.model_analysis.issues import Issue, log_issues
from tidemark.model_analysis.lora import LoraFacts, find_adapters
from tidemark.model_analysis.modules import NamedModule, is_module, modules_of, tensors_by_name, tensors_of
from tidemark.model_analysis.result import ModelAnalysis, ModelFacts
from tidemark.model_analysis.storages import StorageTally
from tidemark.model_analysis.tensors import TensorFacts, UnreadTensor, read_tensor
from tidemark.model_analysis.values import check_tensors

#: MiB from which a parameter is oversized. It is one block of the allocator, and training requests at least three more of its
#: size (gradient, two moments of Adam): 400 MiB that have to be free in pieces of 100.
OVERSIZED_MB = 100.0


def analyze_model(
    model: Any,
    name: str | None = None,
    lang: str | None = None,
    *,
    oversized_mb: float = OVERSIZED_MB,
    values: bool = False,
    log: bool = True,
) -> ModelAnalysis:
    """Memory of a model's parameters and buffers: totals, by module, layer, dtype, device and shape, and unusual tensors.

    ``model`` is a ``torch.nn.Module`` (also scripted, compiled, wrapped or sharded), a state dict, or pairs of name and tensor.
    No tensor is read, moved or copied: meta tensors count with the size they would have. ``name`` is the name in the report (by
    default the class), ``lang`` is ``"en"`` or ``"zh"``, and parameters of ``oversized_mb`` MiB or more are listed as
    oversized. With ``values`` all tensors are read, as in ``check_tensors()``, and those with NaN or infinite values are
    issues, too. The summary goes to the logger ``tidemark`` as INFO, unusual tensors as WARNING and non-finite ones as ERROR,
    unless ``log`` is false.

    Raises ImportError without PyTorch, and TypeError for objects without parameters.
    """
    require_torch("analyze_model")
    if is_module(model):
        modules = modules_of(model)
        named = list(tensors_of(modules))
    else:
        modules = [NamedModule("", type(model).__name__, model)]
        by_name = tensors_by_name(model)
        if by_name is None:
            raise TypeError(
                f"analyze_model takes a torch.nn.Module, a state dict or pairs of name and tensor, not {type(model).__name__}"
            )
        named = list(by_name)  # kept until the end: storages are identified by their addresses
    tally = StorageTally()
    tensors: list[TensorFacts] = []
    unread: list[UnreadTensor] = []
    for entry in named:
        try:
            tensors.append(read_tensor(entry, tally))
        except Exception as problem:  # a tensor subclass may raise anything
            unread.append(UnreadTensor(entry.name, f"{type(problem).__name__}: {problem}"))
    facts = _facts(name or modules[0].kind, modules, tensors, unread, oversized_mb, lang)
    if values:
        facts.issues.extend(_value_issues(model if is_module(model) else [(e.name, e.tensor) for e in named], facts.name, lang))
    analysis = ModelAnalysis(facts, lang)
    if log:
        _log(analysis, lang)
    return analysis


def _facts(
    name: str,
    modules: Sequence[NamedModule],
    tensors: list[TensorFacts],
    unread: list[UnreadTensor],
    oversized_mb: float,
    lang: str | None,
) -> ModelFacts:
    parameters = [tensor for tensor in tensors if tensor.kind != "buffer"]
    layers = group_by(parameters, lambda tensor: layer_of(tensor.module))
    oversized = sorted((t for t in parameters if t.megabytes >= oversized_mb), key=lambda tensor: -tensor.bytes)
    lora = find_adapters(parameters, {module.path: module.module for module in modules})
    return ModelFacts(
        name=name,
        tensors=tensors,
        unread=unread,
        tree=module_tree(tensors, {module.path: module.kind for module in modules}),
        layers=layers,
        dtypes=group_by(parameters, lambda tensor: tensor.dtype),
        devices=group_by(parameters, lambda tensor: tensor.device),
        shapes=group_by(parameters, lambda tensor: shape_text(tensor.shape)),
        blocks=repeated_blocks(layers),
        tied=_tied(tensors),
        oversized=oversized,
        oversized_mb=oversized_mb,
        lora=lora,
        issues=_issues(oversized, oversized_mb, unread, lora, lang),
    )


def _tied(tensors: Sequence[TensorFacts]) -> list[list[str]]:
    tied: dict[str, list[str]] = {}
    for tensor in tensors:
        if tensor.shared_with is not None:
            tied.setdefault(tensor.shared_with, [tensor.shared_with]).append(tensor.name)
    return list(tied.values())


def _issues(
    oversized: Sequence[TensorFacts],
    oversized_mb: float,
    unread: Sequence[UnreadTensor],
    lora: LoraFacts | None,
    lang: str | None,
) -> list[Issue]:
    found: list[Issue] = []
    for tensor in oversized:
        text = say(
            "oversized parameter {name}: {mb:.1f} MB ({shape}, {dtype}), the threshold is {limit:g} MB",
            lang,
            name=tensor.name,
            mb=tensor.megabytes,
            shape=shape_text(tensor.shape),
            dtype=tensor.dtype,
            limit=oversized_mb,
        )
        found.append(Issue("warning", "oversized_parameter", tensor.name, text, tensor.megabytes))
    for missing in unread:
        text = say("could not read {name}: {reason}; it is in no total", lang, name=missing.name, reason=missing.reason)
        found.append(Issue("warning", "unread_parameter", missing.name, text))
    return found + (_adapter_issues(lora, lang) if lora is not None else [])


def _value_issues(source: Any, model: str, lang: str | None) -> list[Issue]:
    found: list[Issue] = []
    for tensor in check_tensors(source, lang, log=False).bad:
        for kind, word, count in (("nan", "NaN", tensor.nan), ("inf", "Inf", tensor.inf)):
            if count:
                text = say(
                    "{model} contains {word}: {name} ({count:,} of {elements:,} values, {mb:.1f} MB, {dtype}, {device})",
                    lang,
                    model=model,
                    word=word,
                    name=tensor.name,
                    count=count,
                    elements=tensor.elements,
                    mb=tensor.bytes / MIB,
                    dtype=tensor.dtype,
                    device=tensor.device,
                )
                found.append(Issue("error", kind, tensor.name, text, tensor.bytes / MIB))
    return found


def _adapter_issues(lora: LoraFacts, lang: str | None) -> list[Issue]:
    found: list[Issue] = []
    for module in lora.larger_than_base:
        text = say(
            "the adapter of {name} has {adapter:,} parameters (rank {rank}), the weight that it adapts {base:,}",
            lang,
            name=module.module,
            adapter=module.parameters,
            rank=module.rank,
            base=module.base_parameters,
        )
        found.append(Issue("warning", "adapter_not_smaller", module.module, text, module.bytes / MIB))
    if lora.base_trainable_parameters and not lora.frozen_parameters:
        text = say(
            "{count:,} parameters beside the LoRA adapters are trainable: each has a gradient and optimizer state",
            lang,
            count=lora.base_trainable_parameters,
        )
        found.append(Issue("warning", "base_trainable", "", text))
    return found


def _log(analysis: ModelAnalysis, lang: str | None) -> None:
    share = analysis.param_efficiency
    text = say(
        "model {name}: {mb:.1f} MB, {total:,} parameters, {trainable:,} of them trainable ({share})",
        lang,
        name=analysis.facts.name,
        mb=analysis.memory_mb,
        total=analysis.total_params,
        trainable=analysis.trainable_params,
        share="-" if share is None else f"{share:.2f}%",
    )
    package_logger().info("%s", text)
    log_issues(analysis.facts.issues, lang)
