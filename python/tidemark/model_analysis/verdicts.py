"""The conditions under which a parameter's gradient is zero, vanishing, exploding or not finite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class GradientThresholds:
    """Thresholds for gradients of parameters, after dividing by any loss scale. All of them can be set."""

    #: Root mean square below which a gradient vanishes: float16 has no numbers between 0 and 6e-8, and Adam's epsilon (1e-8) is
    #: no longer small beside it.
    vanishing_rms: float = 1e-7
    #: Norm from which a gradient explodes: gradients are usually clipped to a norm of 0.1 to 10 for the whole model, so one
    #: parameter's would be cut to a hundredth or less.
    exploding_norm: float = 1e3
    #: Factor over the median of the parameter's own earlier norms from which it explodes: from step to step, norms of one
    #: parameter stay within a factor of some ten.
    exploding_growth: float = 100.0
    #: Minimum number of earlier steps for this median: the first ones of a training differ widely.
    growth_after: int = 5
    #: Recorded steps in a row with a zero or missing gradient before it is reported. LoRA's A has a zero gradient in the first
    #: step, because B starts at zero, and not every expert of a mixture has tokens in every step.
    zero_steps: int = 3


#: From harmless to worst.
VERDICTS = ("healthy", "missing", "zero", "vanishing", "exploding", "inf", "nan")


def verdict_on(norms: Sequence[float | None], elements: int, limits: GradientThresholds, least: float = 0.0) -> str:
    """The verdict on a parameter with this many elements at the last of the steps; ``None``: it had no gradient then.
    ``least``: a lower bound of all earlier positive norms, to avoid scanning them.
    """
    now = norms[-1]
    if now is None or now == 0.0:
        recent = list(norms)[-limits.zero_steps :]
        if len(recent) < limits.zero_steps or any(norm is not None and norm != 0.0 for norm in recent):
            return "healthy"
        return "missing" if now is None else "zero"
    if math.isnan(now):
        return "nan"
    if math.isinf(now):
        return "inf"
    if now < limits.vanishing_rms * math.sqrt(elements):
        return "vanishing"
    if now >= limits.exploding_norm:
        return "exploding"
    if now < limits.exploding_growth * least:
        return "healthy"
    earlier = [norm for norm in list(norms)[:-1] if norm is not None and math.isfinite(norm) and norm > 0.0]
    grown = len(earlier) >= limits.growth_after and now >= limits.exploding_growth * median(earlier)
    return "exploding" if grown else "healthy"
