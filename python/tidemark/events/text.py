"""The event profiler's lines and reports as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tidemark._columns import padded
from tidemark._language import say
from tidemark._sizes import MIB, mb, signed_mb
from tidemark._torch import byte_length
from tidemark.events.allocator_stats import Counters

NAME_WIDTH = 20


class Event(NamedTuple):
    """One call of ``record()``."""

    name: str
    time: float  #: seconds since the profiler's start
    at: float  #: seconds since 1970
    counters: Counters | None  #: bytes; None without CUDA
    info: str | None


def event_line(event: Event, lang: str | None) -> str:
    """The log's line of an event."""
    counters = event.counters
    allocated, reserved, most_allocated, most_reserved = (None,) * 4 if counters is None else counters
    line = say(
        "Event: {name} | Allocated: {allocated} | Reserved: {reserved} | Max allocated: {max_allocated} | "
        "Max reserved: {max_reserved} | Elapsed: {seconds:.2f}s",
        lang,
        name=event.name,
        allocated=mb(allocated, 7),
        reserved=mb(reserved, 7),
        max_allocated=mb(most_allocated, 7),
        max_reserved=mb(most_reserved, 7),
        seconds=event.time,
    )
    return line if event.info is None else line + say(" | Info: {info}", lang, info=event.info)


def timeline(events: Sequence[Event]) -> str:
    """The table of ``print_report()``: a row for each event, in the order in which they were recorded."""
    rows = [
        f"{padded(name, NAME_WIDTH)} | Allocated: {mb(used and used.allocated)} | Reserved: {mb(used and used.reserved)}"
        for name, _, _, used, _ in events
    ]
    return "\n".join(["", "==== GPU Memory Timeline ====", *rows])


def summary(events: Sequence[Event], by_name: Mapping[str, Sequence[Event]], lang: str | None) -> str:
    """The peak and its event, growth from the first event to the last, and each event's average."""
    known = [(event, event.counters) for event in events if event.counters is not None]
    lines = ["", say("Memory summary", lang), "=" * 14, ""]
    if not events:
        return "\n".join([*lines, say("No events were recorded.", lang)])
    lines.append(
        say(
            "{events} events of {names} kinds in {seconds:.2f} s",
            lang,
            events=len(events),
            names=len(by_name),
            seconds=events[-1].time - events[0].time,
        )
    )
    if not known:
        lines.append(say("CPU mode: PyTorch counts no memory of the CPU, so events have times only.", lang))
    else:
        peak, at_peak = max(known, key=lambda pair: pair[1].allocated)
        highest = max(counters.max_allocated for _, counters in known)
        growth = known[-1][1].allocated - known[0][1].allocated
        lines += [
            "",
            say(
                "Peak at an event: {name}, allocated {allocated}, reserved {reserved}",
                lang,
                name=peak.name,
                allocated=mb(at_peak.allocated),
                reserved=mb(at_peak.reserved),
            ),
            say("Peak between events: {allocated} allocated", lang, allocated=mb(highest)),
            say(
                "Growth: {first} to {last}, {growth}",
                lang,
                first=mb(known[0][1].allocated),
                last=mb(known[-1][1].allocated),
                growth=signed_mb(growth),
            ),
        ]
    lines += ["", say("Events:", lang)]
    for name, calls in by_name.items():
        lines.append(
            say(
                "  {name} {count}x, allocated {allocated}, reserved {reserved} on average",
                lang,
                name=padded(name, NAME_WIDTH),
                count=len(calls),
                allocated=mb(_mean(calls, 0)),
                reserved=mb(_mean(calls, 1)),
            )
        )
    return "\n".join(lines)


def _mean(calls: Sequence[Event], which: int) -> float | None:
    known = [call.counters[which] for call in calls if call.counters is not None]
    return sum(known) / len(known) if known else None


def tensor_lines(name: str, tensors: Mapping[str, Any], lang: str | None) -> list[str]:
    """Shape, type, bytes and device of each tensor; other values are shown unchanged."""
    lines = [say("Tensors at {name}:", lang, name=name)]
    for key, tensor in tensors.items():
        if hasattr(tensor, "numel") and hasattr(tensor, "element_size"):
            size = byte_length(tensor)
            lines.append(
                f"  {key}: shape={tuple(tensor.shape)}, dtype={tensor.dtype}, size={size / MIB:.2f}MB, "
                f"bytes={size}, device={tensor.device}"
            )
        else:
            lines.append(f"  {key}: {tensor!r}")
    return lines


def model_lines(name: str, model: Mapping[str, Any], lang: str | None) -> list[str]:
    """The caller's values for the model: parameter counts with separators, sizes in MB, the rest unchanged."""
    words = {"total_params": say("total parameters", lang), "trainable_params": say("trainable parameters", lang)}
    lines = [say("Model at {name}:", lang, name=name)]
    for key, value in model.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if isinstance(value, float) else str(value)
        lines.append(f"  {words.get(key, key)}: {shown}{'MB' if key.endswith('_mb') else ''}")
    return lines
