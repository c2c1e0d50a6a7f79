"""The tools of a server: their names, arguments, and actions on a folder's recordings."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

import tidemark
from tidemark import _engine
from tidemark._errors import TidemarkError
from tidemark.mcp.answers import DEFAULT_ROWS, MAX_ROWS, answer, page
from tidemark.mcp.folder import Folder, Listing
from tidemark.mcp.printable import printable
from tidemark.mcp.recordings import OpenRecordings
from tidemark.reading.rendering import Result

Schema = dict[str, Any]
#: Reports the current action of a call.
Say = Callable[[str], None]

#: Rows listed by an analysis; answers show them page by page.
_LISTED_ROWS = 1000
#: Options that are not offered: the number of rows (see max_rows), an exit code, the rank of one recording among several.
_NOT_OFFERED = {"top", "fail-on-leak", "rank"}

_PATH = "Recording or snapshot: its path from the server's folder, or the URI of its resource"
_PAGING: Schema = {
    "max_rows": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_ROWS,
        "description": f"Items of each list in the answer [default: {DEFAULT_ROWS}; fewer where the answer would be too long]",
    },
    "list": {
        "type": "string",
        "description": "Only this list of the answer, as left_out names it: devices[0].call_sites_at_peak",
    },
    "offset": {"type": "integer", "minimum": 0, "description": "The first item of `list` [default: 0]"},
}
_FILTER: Schema = {
    "module": {"type": "string", "description": "Only blocks of these modules and of what is in them: layers.3.*"},
    "component": {"type": "string", "description": "Only blocks of this part of the model: attention, mlp, embedding, ..."},
    "category": {"type": "string", "description": "Only blocks of this category: parameter, gradient, activation, ..."},
    "phase": {"type": "string", "description": "Only blocks allocated in this phase: forward, backward, optimizer, ..."},
}
_DEVICE: Schema = {"device": {"type": "string", "description": "Only this device: cuda:0"}}
_MOMENT: Schema = {
    "at": {
        "type": "string",
        "description": "The moment: peak (of each device), end, a time (12.5s), a share (40%), a step (step:3) or a mark",
    }
}


@dataclass(frozen=True)
class Tool:
    """One tool. ``run`` is called on a separate thread."""

    name: str
    description: str
    properties: Schema
    required: tuple[str, ...]
    run: Callable[[dict[str, Any], Say], str] = field(repr=False)

    @property
    def schema(self) -> Schema:
        """The schema of its arguments."""
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


def check_arguments(name: str, schema: Schema, arguments: Mapping[str, Any]) -> None:
    """Raises a TidemarkError for invalid arguments, which names the valid ones."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(arguments))
    if error is not None:
        where = ".".join(map(str, error.absolute_path))
        problem = printable(f"{where}: {error.message}" if where else error.message)
        raise TidemarkError(f"{problem[:500]}; {name} takes {', '.join(schema['properties'])}")


def listing(found: Listing) -> dict[str, Any]:
    """The recordings of a folder, for an answer."""
    return {
        "recordings": [
            {"path": file.path, "uri": file.uri, "bytes": file.size_bytes, "changed_wall_ns": file.changed_ns}
            for file in found.files
        ],
        "complete": found.complete,
    }


class Tools:
    """The reading tools. Results are from the files' content at the time of the call."""

    def __init__(self, folder: Folder) -> None:
        self._recordings = OpenRecordings(folder)
        self._one_at_a_time = threading.Lock()  # one analysis may need all memory and processors
        self.all = {tool.name: tool for tool in self._make()}

    def _make(self) -> list[Tool]:
        made = [
            Tool(
                "list_recordings",
                "Recordings (.tide) and PyTorch memory snapshots (.pickle, also packed) in the server's folder.",
                dict(_PAGING),
                (),
                self._list,
            ),
            Tool(
                "open",
                "Read a recording or snapshot: its process, its length, the peaks of each device, and the quality of the data.",
                {"path": {"type": "string", "description": _PATH}, **_PAGING},
                ("path",),
                self._open,
            ),
        ]
        made += [self._of_analysis(analysis) for analysis in _engine.analyses()]
        return [*made, self._of_compare(), self._of_simulate()]

    def _of_analysis(self, analysis: _engine.Analysis) -> Tool:
        properties: Schema = {"path": {"type": "string", "description": _PATH}}
        for option in analysis["options"]:
            if option["name"] not in _NOT_OFFERED:
                properties[option["name"].replace("-", "_")] = _schema_of(option)
        properties.update(_DEVICE)
        if analysis["takes_moment"]:
            properties.update(_MOMENT)
        if analysis["takes_filter"]:
            properties.update(_FILTER)
        name = analysis["name"]
        listed = any(option["name"] == "top" for option in analysis["options"])

        def run(arguments: dict[str, Any], say: Say) -> str:
            return self._analyze(name, {"top": _LISTED_ROWS} if listed else {}, arguments, say)

        return Tool(name, f"{analysis['help']}. JSON of `tidemark {name}`.", {**properties, **_PAGING}, ("path",), run)

    def _of_compare(self) -> Tool:
        words = {"type": "string"}
        properties: Schema = {
            "a": {**words, "description": f"The earlier one. {_PATH}"},
            "b": {**words, "description": f"The later one. {_PATH}"},
            "by": {**words, "enum": ["peak", "traffic"], "description": "Compare what is held at the peak, or all allocations"},
            "group_by": {**words, "description": "stack, category, component, layer, module, phase or step [default: stack]"},
            "ignore_lines": {"type": "boolean", "description": "Stacks that differ in line numbers only are the same"},
            "fail_over": {**words, "description": 'Growth of a peak that is too much, for budget.exceeded: "5%", "100MiB"'},
        }
        return Tool(
            "compare",
            "What changed from one recording to another: totals, and which stacks or owners hold more or less. "
            "JSON of `tidemark compare`.",
            {**properties, **_DEVICE, **_FILTER, **_PAGING},
            ("a", "b"),
            self._compare,
        )

    def _of_simulate(self) -> Tool:
        properties: Schema = {
            "path": {"type": "string", "description": _PATH},
            "settings": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 20,
                "description": 'Settings to try, as in PYTORCH_ALLOC_CONF: ["expandable_segments:True"]',
            },
            "search": {"type": "boolean", "description": "Try the settings that are worth trying"},
            "memory": {"type": "string", "description": 'Memory that PyTorch may reserve on each GPU: "24GiB"'},
            "recorded": {"type": "string", "description": "Settings of the recorded program, if the file does not say"},
        }
        return Tool(
            "simulate",
            "What other settings of PyTorch's allocator would have done to the recorded program, by Tidemark's model of the "
            "allocator. JSON of `tidemark simulate --allocator model`.",
            {**properties, **_DEVICE, **_PAGING},
            ("path",),
            self._simulate,
        )

    def _list(self, arguments: dict[str, Any], say: Say) -> str:
        return _paged(listing(self._recordings.folder.recordings()), arguments)

    def _open(self, arguments: dict[str, Any], say: Say) -> str:
        given, paging = _split(arguments)
        summary = self._result("summary", {}, given, say)
        short = {key: value for key, value in summary.items() if not isinstance(value, list)}
        short["devices"] = [
            {key: value for key, value in device.items() if not isinstance(value, list)} for device in summary["devices"]
        ]
        return _paged(short, paging)

    def _analyze(self, analysis: str, fixed: dict[str, Any], arguments: dict[str, Any], say: Say) -> str:
        given, paging = _split(arguments)
        return _paged(self._result(analysis, fixed, given, say), paging)

    def _result(self, analysis: str, fixed: dict[str, Any], given: dict[str, Any], say: Say) -> dict[str, Any]:
        options = {**fixed, **{key: value for key, value in given.items() if key != "path"}}

        def made(runs: list[tidemark.Run]) -> Result:
            result: Result = getattr(runs[0], analysis)(**options)
            return result

        return self._made(analysis, options, [given["path"]], made, say)

    def _compare(self, arguments: dict[str, Any], say: Say) -> str:
        given, paging = _split(arguments)
        options = {"top": _LISTED_ROWS, **{key: value for key, value in given.items() if key not in ("a", "b")}}

        def made(runs: list[tidemark.Run]) -> Result:
            return tidemark.compare(runs[0], runs[1], **options)

        return _paged(self._made("compare", options, [given["a"], given["b"]], made, say), paging)

    def _simulate(self, arguments: dict[str, Any], say: Say) -> str:
        given, paging = _split(arguments)
        options = {key: value for key, value in given.items() if key != "path"}

        def made(runs: list[tidemark.Run]) -> Result:
            result: Result = runs[0].simulate(**options, allocator="model")
            return result

        return _paged(self._made("simulate", options, [given["path"]], made, say), paging)

    def _made(
        self,
        what: str,
        options: dict[str, Any],
        names: list[str],
        make: Callable[[list[tidemark.Run]], Result],
        say: Say,
    ) -> dict[str, Any]:
        """The JSON of a result, with the files' names."""
        with self._one_at_a_time:
            say(f"reading {', '.join(map(printable, names))}")
            recordings = [self._recordings.get(name) for name in names]
            key = (what, json.dumps(options, sort_keys=True), *(recording.file.version for recording in recordings), *names)
            known = self._recordings.known_result(key)
            if known is not None:
                return known
            say(f"{what} of {', '.join(recording.path for recording in recordings)}")
            try:
                document = make([recording.run for recording in recordings]).to_dict()
            except (TidemarkError, ValueError) as error:
                prefix = "" if isinstance(error, TidemarkError) else f"{recordings[0].path}: "
                raise TidemarkError(f"{prefix}{error}") from None
            self._recordings.keep_result(key, document)
            return document


def _schema_of(option: _engine.Option) -> Schema:
    """An option of a command as a property of a tool."""
    if option["name"] == "simulate":
        return {
            "type": "string",
            "enum": ["model", "off"],
            "description": "Replay the requests under other settings of the allocator, for advice [default: off]",
        }
    expected = option["expected"]
    default = f" [default: {option['initial']}]" if option["initial"] else ""
    said: Schema = {"description": f"{option['help']}{default}"}
    if option["is_flag"]:
        return {"type": "boolean", **said}
    if expected.startswith("one of "):
        return {"type": "string", "enum": expected[len("one of ") :].split(", "), **said}
    if expected.startswith("an integer"):
        return {"type": "integer", **said}
    return {"type": ["string", "number"], "description": f"{option['help']}: {expected}{default}"}


def _split(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of an analysis, and those that select the part of its result."""
    paging = {key: value for key, value in arguments.items() if key in _PAGING}
    return {key: value for key, value in arguments.items() if key not in _PAGING}, paging


def _paged(document: dict[str, Any], paging: dict[str, Any]) -> str:
    rows = paging.get("max_rows", DEFAULT_ROWS)
    if "list" in paging:
        return page(document, paging["list"], paging.get("offset", 0), rows)
    if "offset" in paging:
        raise TidemarkError("offset: say of which list, as left_out names it: list")
    return answer(document, rows)
