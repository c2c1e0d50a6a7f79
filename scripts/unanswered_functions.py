#!/usr/bin/env python3
"""Lists the functions of NVIDIA's libraries that installed PyTorch versions are linked with and the phantom GPU does not have.

    scripts/unanswered_functions.py --phantom build/release/lib/libtidemark_phantom.so PYTHON...

prints the list of docs/phantom-gpu.md.

    ... --check     fails if the page lacks one of them, or lists one that has an answer
    ... --write     writes the list into the page

It reads the functions that PyTorch's libraries import, those that libtidemark_phantom.so exports, and the patterns of the
others that succeed (src/phantom/standins/standins.cpp).
"""

import argparse
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/phantom-gpu.md"
RULES = ROOT / "src/phantom/standins/standins.cpp"
BEGIN, END = "<!-- unanswered functions: begin -->", "<!-- unanswered functions: end -->"

# Library and what its functions are used for, by their beginning.
LIBRARIES = {
    "cuFile": "cuFile: `torch.cuda.gds`",
    "cuLink": "driver: linking of machine code at run time",
    "cublas": "cuBLAS: copies of matrices, choice of algorithms by hand",
    "cuda": "runtime: conditional nodes of graphs, libraries of kernels",
    "cudnn": "cuDNN: convolutions without its backend API (`TORCH_CUDNN_V8_API_DISABLED=1`)",
    "cusparseLt": "cuSPARSELt: `torch.sparse.to_sparse_semi_structured`",
    "cusparse": "cuSPARSE: triangular solutions of block matrices, sorting",
    "nccl": "NCCL: device communicators, one-sided calls, growth and suspension of communicators",
    "nvshmem": "NVSHMEM: symmetric memory",
}
# C++ names and PyTorch's own functions are none of NVIDIA's.
NVIDIA = re.compile(r"(cu[A-Z]|cublas|cuda[A-Z]|cudnn|cufft|cupti|curand|cusolver|cusparse|nccl[A-Z]|nvrtc|nvshmem)\w*$")


def symbols(path, kind):
    lines = subprocess.run(["nm", "-D", f"--{kind}-only", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()}


def imports(python):
    """Of the libraries of this interpreter's PyTorch, which need not start."""
    ask = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    folder = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    names = set()
    for library in sorted(Path(folder, "lib").glob("*.so*")):
        names |= symbols(library, "undefined")
    return {name for name in names if NVIDIA.match(name)}


def rules():
    found = re.findall(r'\{"([^"]+)", StandinFunction::(\w+)\}', RULES.read_text())
    if not found:
        sys.exit(f"{RULES}: has no rules")
    return found


def fails(function, patterns):
    return next((what for pattern, what in patterns if fnmatch.fnmatchcase(function, pattern)), "fail") == "fail"


def unanswered(phantom, pythons):
    answered, patterns = symbols(phantom, "defined"), rules()
    names = set().union(*map(imports, pythons))
    return sorted(name for name in names - answered if fails(name, patterns))


def text_of(functions):
    groups = {}
    for name in functions:
        beginning = next((beginning for beginning in LIBRARIES if name.startswith(beginning)), None)
        if beginning is None:
            sys.exit(f"{name}: LIBRARIES of {sys.argv[0]} does not say what it is used for")
        groups.setdefault(beginning, []).append(name)
    lines = ["| used for | functions |", "|---|---|"]
    for beginning in LIBRARIES:
        if beginning in groups:
            lines.append(f"| {LIBRARIES[beginning]} | {', '.join(f'`{name}`' for name in groups[beginning])} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--phantom", required=True, help="libtidemark_phantom.so")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    functions = unanswered(options.phantom, options.pythons)
    page = PAGE.read_text()
    before, begin, rest = page.partition(BEGIN)
    listed, end, after = rest.partition(END)
    if options.write:
        PAGE.write_text(f"{before}{begin}\n\n{text_of(functions)}\n\n{end}{after}")
    elif options.check:
        names, patterns = re.findall(r"`(\w+)`", listed), rules()
        missing = sorted(set(functions) - set(names))
        answered = symbols(options.phantom, "defined")
        wrong = [name for name in names if NVIDIA.match(name) and (name in answered or not fails(name, patterns))]
        if missing or wrong:
            sys.exit(f"{PAGE} does not list {missing}, and lists {wrong}, which are answered: run this with --write")
    else:
        print(text_of(functions))


if __name__ == "__main__":
    main()
