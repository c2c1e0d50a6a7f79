"""tidemark.GradientMonitor: gradients of each layer over time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tidemark._language import say
from tidemark._sections import Section, sections_html, sections_text
from tidemark._sizes import MIB
from tidemark._torch import require_torch
from tidemark.model_analysis.checked import SkippedTensor, checkable
from tidemark.model_analysis.fused import norms
from tidemark.model_analysis.groups import layer_of
from tidemark.model_analysis.issues import Issue, log_issues
from tidemark.model_analysis.modules import is_module, modules_of, tensors_of
from tidemark.model_analysis.verdicts import VERDICTS, GradientThresholds, verdict_on


@dataclass(frozen=True)
class LayerGradients:
    """The gradients of a layer's parameters."""

    layer: str
    #: The worst verdict of its parameters at the last recorded step, one of ``verdicts.VERDICTS``.
    verdict: str
    #: Norm over all its parameters at each step of the history, the last one last; ``None`` if none had a gradient.
    norms: list[float | None]
    #: Recorded steps in which a parameter had this verdict, since the start: ``{"nan": 2}``.
    counts: dict[str, int]


class GradientMonitor:
    """Watches a model's gradients: call ``record()`` after each backward pass, or pass ``optimizer`` to record before its
    steps.

    Each record takes the norm of every gradient by one fused pass over each device's gradients, keeps ``history`` steps of them
    (one number per parameter and step, in host memory), and logs changes for the worse: NaN and infinite gradients as ERROR,
    zero, vanishing, exploding and missing ones as WARNING, each with the parameter's name and MB. ``every``: read gradients in
    one of this many calls of record(), because reading waits for the device. Gradients of sharded parameters are those of this
    process's part. Not thread-safe.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        *,
        every: int = 1,
        history: int = 100,
        thresholds: GradientThresholds | None = None,
        lang: str | None = None,
        log: bool = True,
    ) -> None:
        require_torch("GradientMonitor")
        if not is_module(model):
            raise TypeError(f"GradientMonitor takes a torch.nn.Module, not {type(model).__name__}")
        if every < 1 or history < 1:
            raise ValueError(f"every and history are 1 or more, not {every} and {history}")
        self.thresholds = thresholds or GradientThresholds()
        self.step = 0  #: calls of record()
        self.issues: list[Issue] = []  #: at the last recorded step
        self._every, self._lang, self._log = every, lang, log
        self._watched = [_Watched(entry.name, entry.module, entry.tensor, history) for entry in _trainable(model)]
        self._layer_norms: dict[str, deque[float | None]] = {watched.layer: deque(maxlen=history) for watched in self._watched}
        self._layer_counts: dict[str, dict[str, int]] = {layer: {} for layer in self._layer_norms}
        self._skipped: dict[str, str] = {}
        self._hook = None if optimizer is None else optimizer.register_step_pre_hook(self._before_step)

    def record(self, scale: float = 1.0) -> list[Issue]:
        """Reads the current gradients; returns their issues. ``scale``: the factor of the loss, if it was scaled and
        ``GradScaler.unscale_()`` has not been called.
        """
        self.step += 1
        if (self.step - 1) % self._every:
            return []
        read: list[_Watched] = []
        gradients: list[Any] = []
        for watched in self._watched:
            gradient, watched.now = watched.parameter.grad, None
            if gradient is None:
                continue
            plain, reason = checkable(gradient, self._lang)
            if plain is None:
                self._skipped[watched.name] = reason
                continue
            read.append(watched)
            gradients.append(plain)
        for watched, norm in zip(read, norms(gradients, 2)):
            watched.now = norm / scale
        found = [issue for watched in self._watched if watched.name not in self._skipped for issue in self._judge(watched)]
        for layer, verdict in {(watched.layer, watched.verdict) for watched in self._watched if watched.verdict != "healthy"}:
            counts = self._layer_counts[layer]
            counts[verdict] = counts.get(verdict, 0) + 1
        self._keep_layers()
        self.issues = found
        if self._log:
            log_issues(found, self._lang)
        return found

    def _before_step(self, *_: object) -> None:
        self.record()

    def layers(self) -> list[LayerGradients]:
        """Every layer with trainable parameters, in the order of the model."""
        verdicts: dict[str, str] = {}
        for watched in self._watched:
            layer = watched.layer
            verdicts[layer] = max(verdicts.get(layer, "healthy"), watched.verdict, key=VERDICTS.index)
        return [
            LayerGradients(layer, verdicts[layer], list(self._layer_norms[layer]), dict(self._layer_counts[layer]))
            for layer in self._layer_norms
        ]

    def history(self, name: str) -> list[float | None]:
        """Norms of one parameter's gradient at the steps of the history; ``None``: it had none. KeyError if no such parameter
        is trained.
        """
        for watched in self._watched:
            if watched.name == name:
                return list(watched.norms)
        raise KeyError(name)

    @property
    def skipped(self) -> list[SkippedTensor]:
        """Parameters with gradients that cannot be read, and the reasons."""
        return [SkippedTensor(name, reason) for name, reason in self._skipped.items()]

    def detach(self) -> None:
        """Removes the hook from the optimizer."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "steps": self.step,
            "thresholds": asdict(self.thresholds),
            "layers": [asdict(layer) for layer in self.layers()],
            "skipped": [asdict(skipped) for skipped in self.skipped],
            "issues": [asdict(issue) for issue in self.issues],
        }

    def __str__(self) -> str:
        return sections_text(self._sections())

    def _repr_html_(self) -> str:
        return sections_html(self._sections())

    def _judge(self, watched: _Watched) -> list[Issue]:
        """Adds the step to the parameter's history. Returns an issue if its verdict has changed for the worse."""
        watched.norms.append(watched.now)
        before = watched.verdict
        watched.verdict = verdict_on(watched.norms, watched.elements, self.thresholds, watched.least)
        if watched.now is not None and 0.0 < watched.now < watched.least:
            watched.least = watched.now
        if watched.verdict == "inf" and not _has_infinite(watched.parameter.grad):
            watched.verdict = "exploding"  # its sum of squares is beyond float32
        if watched.verdict == "healthy":
            return []
        is_error = watched.verdict in ("nan", "inf")
        if watched.verdict == before and not is_error:
            return []
        text = say(_MESSAGES[watched.verdict], self._lang, name=watched.name, step=self.step, mb=watched.mb, norm=watched.now)
        return [Issue("error" if is_error else "warning", f"{watched.verdict}_gradient", watched.name, text, watched.mb)]

    def _keep_layers(self) -> None:
        squares: dict[str, float | None] = dict.fromkeys(self._layer_norms)
        for watched in self._watched:
            if watched.now is not None:
                layer = watched.layer
                squares[layer] = (squares[layer] or 0.0) + watched.now * watched.now
        for layer, total in squares.items():
            self._layer_norms[layer].append(None if total is None else math.sqrt(total))

    def _sections(self) -> list[Section]:
        lang = self._lang
        title = say("Gradients of {count} layers at step {step}", lang, count=len(self._layer_norms), step=self.step)
        heads = ("", say("norm", lang), say("median", lang), say("verdict", lang), say("since the start", lang))
        rows = []
        for layer in self.layers():
            known = sorted(norm for norm in layer.norms if norm is not None and math.isfinite(norm))
            middle = known[len(known) // 2] if known else None
            now = layer.norms[-1] if layer.norms else None
            counts = ", ".join(f"{say(verdict, lang)} {count}" for verdict, count in layer.counts.items())
            rows.append((layer.layer, _number(now), _number(middle), say(layer.verdict, lang), counts))
        found = [Section(title, heads, rows)]
        if self._skipped:
            found.append(Section(say("{count} skipped", lang, count=len(self._skipped)), (), list(self._skipped.items())))
        return found


_MESSAGES = {
    "nan": "gradient of {name} has NaN at step {step} ({mb:.1f} MB)",
    "inf": "gradient of {name} has infinite values at step {step} ({mb:.1f} MB)",
    "exploding": "gradient of {name} explodes at step {step}: norm {norm:.3g} ({mb:.1f} MB)",
    "vanishing": "gradient of {name} vanishes at step {step}: norm {norm:.3g} ({mb:.1f} MB)",
    "zero": "gradient of {name} stays zero, step {step} ({mb:.1f} MB)",
    "missing": "{name} is trainable and gets no gradient, step {step} ({mb:.1f} MB)",
}


class _Watched:
    """A trainable parameter and the norms of its gradient."""

    def __init__(self, name: str, module: str, parameter: Any, history: int) -> None:
        self.name = name
        self.layer = layer_of(module)
        self.parameter = parameter
        self.elements = int(parameter.numel())
        self.mb = self.elements * int(parameter.element_size()) / MIB
        self.norms: deque[float | None] = deque(maxlen=history)
        self.now: float | None = None
        self.least = math.inf  #: smallest positive norm since the start
        self.verdict = "healthy"


def _trainable(model: Any) -> Iterable[Any]:
    seen: set[int] = set()
    for entry in tensors_of(modules_of(model)):
        if entry.kind == "parameter" and entry.tensor.requires_grad and id(entry.tensor) not in seen:
            seen.add(id(entry.tensor))
            yield entry


def _has_infinite(gradient: Any) -> bool:
    plain, _ = checkable(gradient)
    return plain is not None and not math.isfinite(norms([plain], math.inf)[0])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
