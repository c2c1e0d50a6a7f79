"""What a preflight found, as text: the verdict, the memory of each rank, and the longest batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidemark._sizes import bytes_text

FITS, DOES_NOT_FIT, UNKNOWN = range(3)

_MOST_RANKS = 16  # shown


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The results of the program's processes, by rank. ``longest`` of a loader: by tokens times length, and by tokens."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(found, key=lambda one: (one["rank"], one["pid"]))


def report(results: Sequence[dict[str, Any]], exit_code: int, is_planned: bool) -> tuple[str, int]:
    """The text and the exit code: 0 if all ranks fit, 1 if one does not, 2 if it is not known."""
    verdict, line = _verdict(results, exit_code, is_planned)
    lines = [line]
    devices = [(result["rank"], device) for result in results for device in result["devices"]]
    if devices:
        lines += ["", "rank  device  peak allocated  peak reserved    available  name"]
    for rank, device in devices[:_MOST_RANKS]:
        sizes = (bytes_text(device["allocated"]), bytes_text(device["reserved"]), bytes_text(device["available"]))
        columns = (f"{rank:>4}", f"cuda:{device['number']}", f"{sizes[0]:>14}", f"{sizes[1]:>13}", f"{sizes[2]:>11}")
        lines.append("  ".join([*columns, device["name"]]))
    if len(devices) > _MOST_RANKS:
        lines.append(f"({len(devices) - _MOST_RANKS} more)")
    for result in results[:_MOST_RANKS]:
        for loader in result["loaders"]:
            lines += ["", *_loader_lines(loader, result["rank"] if len(results) > 1 else None)]
    return "\n".join(lines), verdict


def _verdict(results: Sequence[dict[str, Any]], exit_code: int, is_planned: bool) -> tuple[int, str]:
    failed = [result for result in results if result["out_of_memory"]]
    if failed:
        ranks = ", ".join(str(result["rank"]) for result in failed[:_MOST_RANKS])
        return DOES_NOT_FIT, f"Does not fit: the program ran out of memory on rank {ranks}."
    if not results:
        what = f"the program ended with exit code {exit_code} before" if exit_code else "the program ended without"
        return UNKNOWN, f"Unknown: {what} iterating a loader of torch.utils.data."
    if is_planned and exit_code == 1:
        return DOES_NOT_FIT, "Does not fit: the plan says why."
    errors = [result for result in results if result["error"] is not None]
    if errors:
        rank, steps, error = (errors[0][name] for name in ("rank", "steps", "error"))
        return UNKNOWN, f"Unknown: rank {rank} failed after {steps} optimizer steps: {error}"
    if any(result["ended"] == "killed" for result in results) or exit_code:
        return UNKNOWN, f"Unknown: the program ended with exit code {exit_code} before the preflight was complete."
    used = [loader for result in results for loader in _loaders_that_count(result)]
    if not all(loader["longest"] for loader in used):
        return UNKNOWN, "Unknown: the longest batches of a loader were not found."
    if not all(_has_run(loader) for loader in used):
        return UNKNOWN, "Unknown: the program ended before it had used its longest batches."
    if not any(loader["training"] for loader in used):
        return FITS, "Fits, without training: no backward pass has run."
    steps = min(result["steps"] for result in results)
    peaks = [device["allocated"] for result in results for device in result["devices"]]
    peak = f", with at most {bytes_text(max(peaks))} allocated" if peaks else "; memory was not measured, without a CUDA device"
    kind = "" if all(result["ended"] == "complete" for result in results) else ", where the program itself ended"
    return FITS, f"Fits: {steps} optimizer steps with the longest batches{kind}{peak}."


def _loaders_that_count(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the training; of a program that has not trained, all."""
    return [loader for loader in result["loaders"] if loader["training"]] or list(result["loaders"])


def _is_one_batch(loader: dict[str, Any]) -> bool:
    scores, tokens = loader["longest"]
    return bool((scores["epoch"], scores["number"]) == (tokens["epoch"], tokens["number"]))


def _has_run(loader: dict[str, Any]) -> bool:
    given = [batch["given"] for batch in loader["longest"]]
    return any(given) if _is_one_batch(loader) else all(given)


def _loader_lines(loader: dict[str, Any], rank: int | None) -> list[str]:
    name = f"Loader {loader['number']}" + (" (training)" if loader["training"] else "")
    if rank is not None:
        name += f" of rank {rank}"
    if not loader["longest"]:
        return [f"{name}: its batches ran as they came: {loader['problem']}"]
    compared, batches = loader["longest"][0]["compared"], loader["batches"]
    of = f" of {batches:,}" if batches is not None and compared < batches else ""
    lines = [f"{name}: {compared:,}{of} batches compared"]
    scores, tokens = loader["longest"]
    if _is_one_batch(loader):
        lines.append(_batch_line("tokens, and tokens times length", scores, scores["given"] + tokens["given"]))
    else:
        lines.append(_batch_line("tokens times length", scores, scores["given"]))
        lines.append(_batch_line("tokens", tokens, tokens["given"]))
    if of:
        lines.append("  Lengths were not known, and reading samples took too long: give more --seconds, or a column `length`")
    return lines


def _batch_line(what: str, batch: dict[str, Any], given: int) -> str:
    samples = "1 sample" if batch["samples"] == 1 else f"{batch['samples']:,} samples"
    runs = "not run" if given == 0 else "run once" if given == 1 else f"run {given} times"
    place = f"batch {batch['number']:,} of epoch {batch['epoch']:,}"
    return f"  most {what}: {samples} of length {batch['length']:,} ({place}), {runs}"
