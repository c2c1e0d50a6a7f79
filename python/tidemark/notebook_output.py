"""Notebook output for a recorded cell: its memory over time, and the memory held at the peak."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark import _html
from tidemark._language import say
from tidemark._sizes import bytes_text

if TYPE_CHECKING:
    from tidemark.reading.results.summary import SummaryDevice

MOST_ROWS = 10


class RecordedCell:
    """A recording for display in IPython: HTML in a browser, the summary as text elsewhere."""

    def __init__(self, path: str) -> None:
        from tidemark.reading.run import read

        self.path = path
        self._run = read(path, progress=False)

    def __repr__(self) -> str:
        return str(self._run.summary())

    def _repr_html_(self) -> str:
        summary = self._run.summary(top=MOST_ROWS)
        used = [device for device in summary.devices if device.peak_allocated_bytes]
        if not used:
            return f"<p>{say('No tensor memory was allocated while this cell was recorded.')}</p>"
        parts = [_findings(str(summary), self.path)]
        parts.append(_html.figure(self._run.timeline().to_svg() or "", "Memory over time"))
        parts += [_device(device) for device in used]
        parts += [f"<p>{escape(issue.text)}</p>" for issue in summary.data_quality.issues]
        return "\n".join(parts)


def _findings(text: str, path: str) -> str:
    """What the summary's text says before it names the recording: a failed request or a leak, with what to do."""
    lines = []
    for line in text.splitlines():
        if Path(path).name in line:
            break
        lines.append(line)
    return f"<pre>{escape(chr(10).join(lines).strip())}</pre>" if any(lines) else ""


def _device(device: SummaryDevice) -> str:
    peak = device.peak_allocated_bytes
    heading = f"<b>{escape(device.device)}</b>: " + say("peak {size} ({bytes:,} bytes)", size=bytes_text(peak), bytes=peak)
    categories = [(row.category.replace("_", " "), row.bytes, row.share) for row in device.categories_at_peak or ()]
    sites = [("" if row.stack is None else row.stack.label, row.bytes, row.share) for row in device.call_sites_at_peak]
    tables = _table(say("Category"), categories) if categories else ""
    return f"<p>{heading}</p>{tables}{_table(say('Call site'), sites)}"


def _table(heading: str, rows: Iterable[tuple[str, int, float]]) -> str:
    cells = [(name, bytes_text(count), f"{share:.1%}") for name, count, share in rows]
    return _html.table((heading, say("At the peak"), say("Share")), cells)
