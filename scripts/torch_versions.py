#!/usr/bin/env python3
"""Plans the same programs with several versions of PyTorch, and prints a table for docs/phantom-gpu.md.

Each version is installed from PyPI into TIDEMARK_CACHE/torch-VERSION (default: ~/.cache/tidemark), without NVIDIA's libraries, which
the phantom GPU replaces; an installed one is used. `torch_versions/programs.py` has the programs. A program is right if
the recording's peaks equal PyTorch's own counters, to the byte.

    scripts/torch_versions.py                             all versions, 1 GB to download and some minutes each
    scripts/torch_versions.py 2.6.0 --only mlp,sort       one version, two programs
    scripts/torch_versions.py --remove                    removes each version that it installed when it is done
"""

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("TIDEMARK_CACHE", Path.home() / ".cache" / "tidemark"))
VERSIONS = ("2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.15.0")
PROGRAMS = ("mlp", "transformer", "cnn", "graph", "expandable", "oom", "sort", "ddp", "fsdp2", "compiled")
FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes", "out_of_memory_count")


def pip(python, *arguments):
    command = [python, "-m", "pip", "install", "-q", "--no-cache-dir", "--no-warn-conflicts", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True, stdout=sys.stderr)


def install(version):
    """The version's interpreter, and whether it was installed now. An existing one is not changed."""
    folder = CACHE / f"torch-{version}"
    python = folder / "bin/python"
    if folder.exists():
        return python, False
    print(f"== installing torch {version} into {folder}", file=sys.stderr, flush=True)
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(["/usr/bin/python3", "-m", "venv", partial], check=True)
    pip(partial / "bin/python", "--no-deps", f"torch=={version}")
    pip(partial / "bin/python", "numpy", *requirements(partial))
    partial.rename(folder)
    return python, True


def requirements(folder):
    """The requirements of the installed torch here, without NVIDIA's libraries."""
    (site,) = folder.glob("lib/python*/site-packages")
    (torch,) = importlib.metadata.distributions(name="torch", path=[str(site)])
    for line in torch.requires:
        text, _, marker = line.partition(";")
        if "extra ==" in marker or re.match(r"nvidia-|cuda-", text):
            continue
        yield line


def plan(tidemark, python, program, folder):
    """None if PyTorch's counters equal the recording, else the reason; and the plan."""
    environment = dict(os.environ)
    environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    if program == "expandable":
        environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    command = [tidemark, "plan", "--gpu", "H200", "--devices", "2", "--steps", "0", "--format", "json"]
    command += ["-f", "-o", folder / "planned.tide", "--", python, ROOT / "scripts/torch_versions/programs.py", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    said = [line for line in done.stderr.splitlines() if line and not line.startswith("COUNTED ")]
    counted = [json.loads(line.removeprefix("COUNTED ")) for line in done.stderr.splitlines() if line.startswith("COUNTED ")]
    if done.returncode != (1 if program == "oom" else 0) or not counted:
        return "\n".join(said[-8:]) or f"exit code {done.returncode}", None
    planned = json.loads(done.stdout)
    for figures in counted:
        same = [each for each in planned["devices"] if each["device"] == f"cuda:{figures['device']}"]
        for name in FIGURES:
            if len(same) != 1 or same[0][name] != figures[name]:
                return f"{name}: PyTorch says {figures[name]}, the plan {[each[name] for each in same]}", planned
    return None, planned


def row(cells):
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--tidemark", default=ROOT / "build/release/bin/tidemark", type=Path)
    parser.add_argument("--only", default=",".join(PROGRAMS), metavar="PROGRAMS", help="separated by commas")
    parser.add_argument("--remove", action="store_true", help="remove what this installed")
    args = parser.parse_args()
    programs = args.only.split(",")
    rows, failed = [], False
    for version in args.versions:
        python, installed = install(version)
        built = subprocess.run(
            [python, "-c", "import importlib.util as u, pathlib, runpy; "
             "v = runpy.run_path(pathlib.Path(u.find_spec('torch').origin).parent / 'version.py'); print(v['cuda'])"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        cells, figures, estimates = [], "", 0
        for program in programs:
            with tempfile.TemporaryDirectory(prefix="tidemark-versions-") as folder:
                why, planned = plan(args.tidemark, python, program, Path(folder))
            failed |= why is not None
            cells.append("yes" if why is None else "**no**")
            print(f"torch {version}, {program}: {why or 'ok'}", file=sys.stderr, flush=True)
            if planned:
                device = planned["devices"][0]
                estimates = sum(value for name, value in planned.items() if name.endswith("_estimate_count"))
                print(f"   {[device[name] for name in FIGURES]}, {estimates} estimates", file=sys.stderr, flush=True)
                if program == "transformer":
                    figures = f"{device['peak_allocated_bytes']:,} / {device['peak_reserved_bytes']:,}"
        rows.append(row([version, built, *cells, figures]))
        if installed and args.remove:
            shutil.rmtree(CACHE / f"torch-{version}")
    print(row(["PyTorch", "CUDA", *programs, "transformer: peak allocated / reserved bytes"]))
    print(row(["---"] * (len(programs) + 3)))
    print("\n".join(rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
