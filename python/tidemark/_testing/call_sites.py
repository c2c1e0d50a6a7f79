"""The lines of a test that hold most tensor memory at its peak, for a test that exceeds its limit."""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark._errors import TidemarkError
from tidemark._sizes import bytes_text

if TYPE_CHECKING:
    from tidemark.recording import Recording

_MOST = 3


class CallSites:
    """``start()``, then ``stop()``: records in between, if PyTorch is loaded and nothing records yet. Never raises: without a
    recording the limit is still checked.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._recording: Recording | None = None

    def start(self) -> None:
        from tidemark import _recorder
        from tidemark.recording import record

        if "torch" not in sys.modules or _recorder.is_recording():
            return
        self._folder = tempfile.TemporaryDirectory(prefix="tidemark-test-", ignore_cleanup_errors=True)
        try:
            self._recording = record(str(Path(self._folder.name) / "test.tide"), samples=False).start()
        except TidemarkError:
            self._recording = None

    def stop(self, devices: list[str]) -> dict[str, list[str]]:
        """By device (``"cuda:0"``, ``"cpu"``): what held most at its peak; without unknown ones."""
        found: dict[str, list[str]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if self._recording is not None:
                    self._recording.stop()
                    if devices and self._recording.path is not None:
                        found = _call_sites(self._recording.path, devices)
            except TidemarkError:
                pass
        if self._folder is not None:
            self._folder.cleanup()
        return found


def _call_sites(path: str, devices: list[str]) -> dict[str, list[str]]:
    from tidemark.reading.run import read

    found = {}
    for device in read(path, progress=False).summary(top=_MOST).devices:
        if device.device not in devices or not device.peak_allocated_bytes:
            continue
        found[device.device] = [f"tensors hold {bytes_text(device.peak_allocated_bytes)} at their peak:"] + [
            f"  {bytes_text(site.bytes):>10}  {'(no stack)' if site.stack is None else site.stack.label}"
            for site in device.call_sites_at_peak[:_MOST]
        ]
    return found
