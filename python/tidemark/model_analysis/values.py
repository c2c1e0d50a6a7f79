"""tidemark.check_tensors: NaN and infinite values, and magnitudes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark._language import say
from tidemark._sections import Section, sections_html, sections_text
from tidemark._sizes import MIB
from tidemark._torch import byte_length, require_torch
from tidemark.model_analysis.checked import SkippedTensor, checkable, named_tensors
from tidemark.model_analysis.fused import start_norms
from tidemark.model_analysis.issues import Issue, log_issues
from tidemark.model_analysis.parts import short_dtype
from tidemark.model_analysis.ranges import value_range

_MOST_ROWS = 12


@dataclass(frozen=True)
class TensorValues:
    """The values of one tensor; for a sharded one, this process's part."""

    name: str
    dtype: str
    device: str
    elements: int
    bytes: int
    nan: int
    inf: int
    #: Largest magnitude of the finite values; ``None`` if there are none.
    abs_max: float | None
    #: Range of the finite values; ``None`` if it was not requested (``ranges=True``) or needed.
    least: float | None
    most: float | None


@dataclass(frozen=True)
class TensorCheck:
    """The result of check_tensors. Prints as a table."""

    tensors: list[TensorValues]
    skipped: list[SkippedTensor]
    issues: list[Issue]
    lang: str | None = None

    @property
    def ok(self) -> bool:
        """Whether every checked value is finite."""
        return not self.bad

    @property
    def bad(self) -> list[TensorValues]:
        """Tensors with NaN or infinite values."""
        return [tensor for tensor in self.tensors if tensor.nan or tensor.inf]

    @property
    def checked_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "ok": self.ok,
            "checked_bytes": self.checked_bytes,
            "tensors": [asdict(tensor) for tensor in self.tensors],
            "skipped": [asdict(tensor) for tensor in self.skipped],
            "issues": [asdict(issue) for issue in self.issues],
        }

    def __str__(self) -> str:
        return sections_text(_sections(self))

    def _repr_html_(self) -> str:
        return sections_html(_sections(self))


def check_tensors(
    source: Any, lang: str | None = None, *, gradients: bool = False, ranges: bool = False, log: bool = True
) -> TensorCheck:
    """Check a model's parameters and buffers (and ``gradients``), or tensors, for NaN and infinite values.

    ``source`` is a model, a tensor, a list of tensors, pairs of name and tensor, or a dict of tensors by name. Each tensor is
    read once, all tensors of a device and dtype by one fused kernel, which computes the largest magnitude and whether all
    values are finite; only tensors that are not finite are read again, to count, and with ``ranges`` all of them, for the
    smallest and largest value. Temporary memory is some MiB for any size of tensors, and is freed; current devices are
    unchanged. Complex, integer, quantized, sparse and meta tensors, and those with freed memory, are skipped and listed in the
    result. Tensors that are not finite are logged as ERROR by the logger ``tidemark`` with name and MB, unless ``log`` is
    false.

    Raises ImportError without PyTorch, and TypeError for other sources.
    """
    require_torch("check_tensors")
    plain: list[tuple[str, Any]] = []
    skipped: list[SkippedTensor] = []
    for name, tensor in named_tensors(source, "check_tensors", gradients):
        held, reason = checkable(tensor, lang)
        if held is None:
            skipped.append(SkippedTensor(name, reason))
        else:
            plain.append((name, held))
    started = start_norms([tensor for _, tensor in plain], math.inf)
    places = [_Place(name, tensor) for name, tensor in plain]  # while the devices work
    values = [_values(place, size, ranges) for place, size in zip(places, started.results())]
    check = TensorCheck(values, skipped, _issues(values, lang), lang)
    if log:
        log_issues(check.issues, lang)
    return check


class _Place:
    """A tensor, and its properties without its values."""

    def __init__(self, name: str, tensor: Any) -> None:
        self.tensor = tensor
        self.elements = int(tensor.numel())
        self.known = (name, short_dtype(tensor), str(tensor.device), self.elements, byte_length(tensor))


def _values(place: _Place, largest: float, ranges: bool) -> TensorValues:
    if math.isfinite(largest) and not ranges:
        return TensorValues(*place.known, 0, 0, largest if place.elements else None, None, None)
    nan, inf, least, most = value_range(place.tensor)
    abs_max = None if least is None or most is None else max(abs(least), abs(most))
    return TensorValues(*place.known, nan, inf, abs_max, least, most)


def _issues(values: Sequence[TensorValues], lang: str | None) -> list[Issue]:
    found: list[Issue] = []
    for tensor in values:
        for kind, word, count in (("nan", "NaN", tensor.nan), ("inf", "Inf", tensor.inf)):
            if count:
                mb = tensor.bytes / MIB
                text = say(
                    "{word} in {name}: {count:,} of {elements:,} values ({mb:.1f} MB, {dtype}, {device})",
                    lang,
                    word=word,
                    name=tensor.name,
                    count=count,
                    elements=tensor.elements,
                    mb=mb,
                    dtype=tensor.dtype,
                    device=tensor.device,
                )
                found.append(Issue("error", kind, tensor.name, text, mb))
    return found


def _sections(check: TensorCheck) -> list[Section]:
    lang = check.lang
    title = say(
        "{count} tensors checked ({mb:.1f} MB), {bad} of them not finite",
        lang,
        count=len(check.tensors),
        mb=check.checked_bytes / MIB,
        bad=len(check.bad),
    )
    shown = check.bad or sorted(check.tensors, key=lambda tensor: -(tensor.abs_max or 0.0))[:_MOST_ROWS]
    heads = ("", "NaN", "Inf", say("largest magnitude", lang), say("least", lang), say("most", lang))
    rows = [
        (tensor.name, f"{tensor.nan:,}", f"{tensor.inf:,}", *(_number(v) for v in (tensor.abs_max, tensor.least, tensor.most)))
        for tensor in shown[:_MOST_ROWS]
    ]
    found = [Section(title, heads if rows else (), rows)]
    if check.skipped:
        reasons = [(tensor.name, tensor.reason) for tensor in check.skipped[:_MOST_ROWS]]
        found.append(Section(say("{count} skipped", lang, count=len(check.skipped)), (), reasons))
    return found


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
