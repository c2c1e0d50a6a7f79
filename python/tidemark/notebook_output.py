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
    from tidemark.reading.run import Run

MOST_ROWS = 10
_SEARCHED = 64  # live storages, the largest
_MANY = 3  # tensors of a container that grows


class RecordedCell:
    """A recording for display in IPython: HTML in a browser, the summary as text elsewhere.

    ``in_process``: it was made in this process just now, so that what holds its leak can be found.
    """

    def __init__(self, path: str, in_process: bool = False) -> None:
        from tidemark.reading.run import read

        self.path = path
        self._run = read(path, progress=False)
        self._holder = _holder_of_leak(self._run) if in_process else None

    def __repr__(self) -> str:
        # A notebook runs a command of the shell after "!".
        return self._with_holder(str(self._run.summary())).replace("\nNext: tidemark ", "\nNext: !tidemark ")

    def _with_holder(self, text: str) -> str:
        """The text of a summary, with the holder that was found in place of what usually holds such memory."""
        if self._holder is None:
            return text
        found = f"  held by {self._holder}"
        return "\n".join(found if line.startswith("  usually held by ") else line for line in text.splitlines())

    def _repr_html_(self) -> str:
        summary = self._run.summary(top=MOST_ROWS)
        used = [device for device in summary.devices if device.peak_allocated_bytes]
        if not used:
            return f"<p>{say('No tensor memory was allocated while this cell was recorded.')}</p>"
        parts = [_findings(self._with_holder(str(summary)), self.path)]
        parts.append(_html.figure(self._run.timeline().to_svg() or "", "Memory over time"))
        parts += [_device(device) for device in used]
        parts += [f"<p>{escape(issue.text)}</p>" for issue in summary.data_quality.issues]
        return "\n".join(parts)


def _holder_of_leak(run: Run) -> str | None:
    """``"__main__.history (20.0 MiB in 20 tensors)"``: the container with most of the live storages of a leak's size."""
    if not run.summary().leak_bytes_per_step:
        return None
    from tidemark import largest_holders

    sizes = [site.held_bytes / site.held_block_count for site in run.leaks().leaks if site.held_block_count]
    sums: dict[str, tuple[int, int]] = {}
    for storage in largest_holders(_SEARCHED):
        size = storage.bytes or 0
        if not any(abs(size - leaked) <= max(512, leaked / 50) for leaked in sizes):
            continue
        paths = (chain.path for chain in storage.chains if chain.kind in ("global", "local") and "[" in chain.path)
        container = next(paths, "").split("[")[0]
        total, count = sums.get(container, (0, 0))
        sums[container] = (total + size, count + 1)
    sums.pop("", None)
    if not sums:
        return None
    name, (total, count) = max(sums.items(), key=lambda entry: entry[1])
    return f"{name} ({bytes_text(total)} in {count} tensors)" if count >= _MANY else None


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
