"""``python -m tidemark preflight``: starts the program, on the GPU of this machine or on a simulated one, and reports."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tidemark._errors import TidemarkError
from tidemark._program import find_program
from tidemark.preflight.report import read_results, report

_STARTUP = Path(__file__).parent / "startup"
# Options of `tidemark plan`, by name.
_OF_PLAN = ("gpu", "memory", "nproc", "python", "output")
_NOT_STARTED = (126, 127)  # as a shell says it


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidemark preflight",
        usage="%(prog)s [OPTIONS] -- PROGRAM...",
        description=(
            "Run a program with the longest batches of its data loaders first, and end it after a few training steps: does it "
            "fit? The program is unchanged, and may be started by torchrun or a script. Loaders of torch.utils.data are asked "
            "for their order and lengths; nothing that comes after the first steps of the training is run, such as saving a "
            "checkpoint."
        ),
        epilog="Exit code 0: it fits; 1: it ran out of memory; 2: an error, or not known.",
    )
    parser.add_argument("--plan", action="store_true", help="run it on a simulated GPU, as `tidemark plan` does")
    parser.add_argument("--gpu", metavar="NAME", help="with --plan: the GPU (default: the one of this machine)")
    parser.add_argument("--memory", metavar="SIZE", help="with --plan: memory of each GPU")
    parser.add_argument("--nproc", metavar="N", help="with --plan: ranks to start")
    parser.add_argument("--python", metavar="FILE", help="with --plan: Python interpreter of the program")
    parser.add_argument("-o", "--output", metavar="FILE", help="with --plan: recording of the plan")
    parser.add_argument("--epochs", type=int, default=1, metavar="N", help="epochs whose batches are compared (default: 1)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="how long samples are read for their lengths, for each loader that does not know them (default: 60)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help="program and its arguments")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        parser.error("give the program after `--`, such as: tidemark preflight -- python train.py")
    if options.epochs < 1 or not options.seconds > 0:
        parser.error("--epochs: from 1; --seconds: above 0")
    given = [name for name in _OF_PLAN if getattr(options, name) is not None]
    if given and not options.plan:
        parser.error(f"--{given[0]}: only with --plan")
    with tempfile.TemporaryDirectory(prefix="tidemark-preflight-") as folder:
        command = program
        if options.plan:
            try:
                command = [find_program(), "plan", "--steps", "0"]
            except TidemarkError as error:
                parser.error(str(error))
            for name in given:
                command += [f"--{name}", getattr(options, name)]
            command += ["--", *program]
        environment = dict(os.environ)
        environment["TIDEMARK_PREFLIGHT"] = json.dumps({"folder": folder, "epochs": options.epochs, "seconds": options.seconds})
        path = [str(_STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(path)
        code = _run(command, environment)
        if code in _NOT_STARTED:
            return 2
        results = read_results(Path(folder))
    sys.stdout.flush()
    text, verdict = report(results, code, options.plan)
    print(f"\n{text}")
    return verdict


def _run(command: list[str], environment: dict[str, str]) -> int:
    """The exit code of the program, as a shell has it."""
    try:
        running = subprocess.Popen(command, env=environment)
    except OSError as error:
        print(f"tidemark preflight: {command[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_STARTED[1]
    while True:
        try:
            code = running.wait()
        except KeyboardInterrupt:  # the program has got it too
            continue
        return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
