"""A model's analysis as a text table and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark._language import say
from tidemark._sections import Section, mb_text, sections_html, sections_text
from tidemark._sizes import MIB
from tidemark.model_analysis.groups import Group, RepeatedBlocks, shape_text

if TYPE_CHECKING:
    from tidemark.model_analysis.result import ModelAnalysis
    from tidemark.model_analysis.tensors import TensorFacts

_MOST_ROWS = 12


def to_text(analysis: ModelAnalysis, lang: str | None = None) -> str:
    """All sections as text, without a line break at the end."""
    return sections_text(sections(analysis, lang))


def to_html(analysis: ModelAnalysis, lang: str | None = None) -> str:
    """The same as tables."""
    return sections_html(sections(analysis, lang))


def sections(analysis: ModelAnalysis, lang: str | None = None) -> list[Section]:
    """Totals first; then the sections that apply to the model."""
    facts = analysis.facts
    count, size = say("parameters", lang), "MB"
    found = [_totals(analysis, lang)]
    found.append(Section(say("By layer", lang), ("", count, size), _layer_rows(facts.layers, facts.blocks, lang)))
    for title, groups in (("By dtype", facts.dtypes), ("By device", facts.devices), ("By shape", facts.shapes)):
        rows = [(group.name, f"{group.parameters:,}", mb_text(group.bytes)) for group in _largest(groups)]
        found.append(Section(say(title, lang), ("", count, size), _shortened(rows, len(groups), lang)))
    if facts.tied:
        found.append(Section(say("Shared (counted once)", lang), (), [(" = ".join(names),) for names in facts.tied]))
    labels = [(label, analysis[key]) for key in ("quantized", "sharded") for label in [*analysis[key]]]
    if labels:
        packed = [(label, mb_text(by_label[label])) for label, by_label in labels]
        found.append(Section(say("Quantized and sharded", lang), ("", size), packed))
    if facts.lora is not None:
        lora = facts.lora
        rows = [
            (say("adapters of {count} modules", lang, count=len(lora.modules)), f"{lora.parameters:,}", mb_text(lora.bytes))
        ]
        rows += [(say("rank {rank}", lang, rank=rank), "", mb_text(size)) for rank, size in lora.bytes_by_rank.items()]
        rows.append((say("base model", lang), f"{lora.base_parameters:,}", mb_text(lora.base_bytes)))
        found.append(Section("LoRA", ("", count, size), rows))
    if facts.oversized:
        rows = _oversized_rows(facts.oversized)
        title = say("Oversized parameters ({limit:g} MB or more)", lang, limit=facts.oversized_mb)
        found.append(Section(title, ("", "", size), _shortened(rows[:_MOST_ROWS], len(rows), lang)))
    others = [issue.message for issue in facts.issues if issue.kind != "oversized_parameter"]
    if others:
        found.append(Section(say("Worth a look", lang), (), [(message,) for message in others[:_MOST_ROWS]]))
    return found


def _totals(analysis: ModelAnalysis, lang: str | None) -> Section:
    share = analysis.param_efficiency
    trainable = say("trainable", lang) + ("" if share is None else f" ({share:.2f}%)")
    rows = [
        (say("all parameters", lang), f"{analysis.total_params:,}", mb_text(analysis.parameter_bytes)),
        (trainable, f"{analysis.trainable_params:,}", mb_text(analysis["trainable_bytes"])),
    ]
    extra = (
        ("buffers", sum(buffer.elements for buffer in analysis.buffers), analysis.buffer_bytes),
        ("gradients", None, analysis.gradient_bytes),
        ("only on the meta device", None, analysis["meta_bytes"]),
        ("on all ranks", None, analysis["global_bytes"] if analysis["sharded"] else 0),
    )
    rows += [(say(what, lang), "" if count is None else f"{count:,}", mb_text(size)) for what, count, size in extra if size]
    return Section(analysis.facts.name, ("", say("parameters", lang), "MB"), rows)


def _layer_rows(layers: Sequence[Group], blocks: Sequence[RepeatedBlocks], lang: str | None) -> list[tuple[str, str, str]]:
    """Equal blocks as one row; of other layers the largest."""
    rows: list[tuple[int, tuple[str, str, str]]] = []
    runs = {run.first: run for run in blocks}
    skip = 0
    for layer in layers:
        if skip > 0:
            skip -= 1
            continue
        run = runs.get(layer.name)
        if run is None:
            rows.append(
                (layer.bytes, (layer.name or say("(the model itself)", lang), f"{layer.parameters:,}", mb_text(layer.bytes)))
            )
            continue
        skip = run.count - 1
        name = say("{first} to {last}, {mb:.1f} MB each", lang, first=run.first, last=_number(run.last), mb=run.bytes / MIB)
        rows.append((run.count * run.bytes, (name, f"{run.count * run.parameters:,}", mb_text(run.count * run.bytes))))
    shown = set(sorted(range(len(rows)), key=lambda index: -rows[index][0])[:_MOST_ROWS])
    return _shortened([row for index, (_, row) in enumerate(rows) if index in shown], len(rows), lang)


def _oversized_rows(tensors: Sequence[TensorFacts]) -> list[tuple[str, str, str]]:
    """Tensors of equal blocks as one row: ``model.layers.*.mlp.up_proj.weight (32)``."""
    alike: dict[tuple[str, str, str], int] = {}
    for tensor in tensors:
        name = ".".join("*" if part.isdigit() else part for part in tensor.name.split("."))
        row = (name, shape_text(tensor.shape), mb_text(tensor.bytes))
        alike[row] = alike.get(row, 0) + 1
    return [(f"{name} ({count})" if count > 1 else name, shape, mb) for (name, shape, mb), count in alike.items()]


def _shortened(rows: list[tuple[str, str, str]], all_of_them: int, lang: str | None) -> list[tuple[str, str, str]]:
    """With a last row for the number of omitted rows."""
    left_out = all_of_them - len(rows)
    return [*rows, (say("{count} more", lang, count=left_out), "", "")] if left_out > 0 else rows


def _largest(groups: Sequence[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: -group.bytes)[:_MOST_ROWS]


def _number(path: str) -> str:
    return path.rpartition(".")[2]
