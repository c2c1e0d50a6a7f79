"""The C++ examples on a real GPU: they are built as in docs/cpp-api.md, and check themselves; for scripts/gpu_check.py."""

import json
import os
import shutil
import subprocess
import sys
import time

WITH_CUDA = ["cuda_training", "libtorch_training"]
# How examples/cpp finds CUDA and PyTorch: by the toolkit's packages, and if that fails by files of the wheels.
WAYS = {"the CUDA toolkit": [], "the wheels": ["-D", "WITHOUT_CUDA_TOOLKIT=ON"]}
FACTS = """
import importlib.util, json, pathlib, torch.utils
nvidia = importlib.util.find_spec("nvidia")
folders = [pathlib.Path(folder) for folder in nvidia.submodule_search_locations] if nvidia else []
found = [str(file.parent) for folder in folders for file in sorted(folder.glob("*/lib/libcupti.so*"))]
print(json.dumps({"cmake": torch.utils.cmake_prefix_path, "cupti": found[:1]}))
"""


class Examples:
    """`check` counts failures and prints lines (gpu_check.Check)."""

    def __init__(self, check, root):
        self.check, self.root = check, root
        self.folder = check.results / "examples"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.problems = 0

    def require(self, what, fine, detail=""):
        self.problems += not fine
        self.check.say(f"examples  {what}: {'as it should be' if fine else 'WRONG'}{f' ({detail})' if detail else ''}")

    def compare(self, what, ours, theirs, whose):
        self.require(what, ours is not None and ours == theirs, f"{ours!r}, by {whose} {theirs!r}")

    def execute(self, command, **environment):
        """The finished command, with its output; stdout and stderr are one."""
        how = {"cwd": self.folder, "env": {**os.environ, **environment}, "text": True, "check": False}
        return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)

    def installed(self):
        """The folder where Tidemark is installed with its C++ API; None if it is not."""
        prefix = self.check.tidemark.parent.parent
        if any(prefix.glob("lib*/**/cmake/tidemark/tidemark-config.cmake")) and any(prefix.glob("lib*/**/libtidemark.so")):
            return prefix
        if not (prefix / "cmake_install.cmake").exists():
            return None
        installed = self.folder / "installed"
        self.execute(["cmake", "--install", prefix, "--component", "development", "--prefix", installed])
        return installed if (installed / "include/tidemark/profiler.h").exists() else None

    def build(self, prefix, torch):
        """(the folder with the programs, notes on the build); no folder if neither way works."""
        tried = {}
        for way, options in WAYS.items():
            build = self.folder / f"build{len(tried)}"
            generator = ["-G", "Ninja"] if shutil.which("ninja") else []
            # If a package has the libraries that the examples' libraries need.
            options = [*options, "-D", f"CMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{prefix}/lib/tidemark"]
            configure = ["cmake", *generator, "-S", self.root / "examples/cpp", "-B", build, *options]
            configured = self.execute(configure, CMAKE_PREFIX_PATH=f"{prefix}:{torch}")
            began = time.monotonic()
            built = self.execute(["cmake", "--build", build]) if configured.returncode == 0 else configured
            missing = [name for name in ["training", *WITH_CUDA] if not (build / name).exists()]
            tried[way] = {"exit_code": built.returncode, "missing": missing, "seconds": time.monotonic() - began}
            if built.returncode == 0 and not missing:
                found = [line[3:] for line in configured.stdout.splitlines() if line.startswith("-- libtorch")]
                tried[way]["found"] = found
                self.check.say(f"examples  built with {way} in {tried[way]['seconds']:.0f} s; {', '.join(found)}")
                return build, tried
            tried[way]["output"] = (configured.stdout + (built.stdout if built is not configured else ""))[-6000:]
            self.check.say(f"examples  not built with {way} (missing: {missing}): {tried[way]['output'][-1500:]}")
        self.require("they are built", False)
        return None, tried

    def ended_well(self, what, done):
        code = done.returncode
        self.require(f"{what}: exit code {code}", code == 0, done.stdout[-2000:] if code != 0 else "")

    def plain(self, build, name):
        """The program's output, without Tidemark around it: it records itself, and compares."""
        done = self.execute([build / name, f"{name}.tide", f"{name}.json"], PATH=self.path())
        self.ended_well(name, done)
        for line in done.stdout.splitlines():
            self.check.say(f"examples  {name}: {line}")
        recording = self.folder / f"{name}.tide"
        self.require(f"{name}: has recorded itself", recording.exists())
        return {"exit_code": done.returncode, "lines": done.stdout.splitlines()}

    def recorded(self, build, name, *options, **environment):
        """Its output under `tidemark run`, and that recording."""
        file = self.folder / f"{name}.run.tide"
        run = [self.check.tidemark, "run", "-q", "-f", "-o", file, *options, "--", build / name, "no.tide", "report.json"]
        done = self.execute(run, **environment)
        self.ended_well(f"{name}, recorded by tidemark run", done)
        return done.stdout.splitlines(), file

    @staticmethod
    def said(lines):
        """The JSON in a program's last line."""
        return json.loads([line for line in lines if line.startswith("{")][-1])

    def path(self):
        return os.pathsep.join([str(self.check.tidemark.parent), os.environ.get("PATH", "")])

    def read(self, command, file):
        return json.loads(self.check.output(self.check.tidemark, command, "--format", "json", file))

    def peaks(self, file, device):
        found = [one for one in self.read("summary", file)["devices"] if one["device"] == device]
        return (found[0]["peak_allocated_bytes"], found[0]["peak_reserved_bytes"]) if found else None

    def libtorch(self, build):
        """PyTorch's own peaks, compared with the program's recording of itself and with that of `tidemark run`."""
        result = {"plain": self.plain(build, "libtorch_training")}
        printed, file = self.recorded(build, "libtorch_training", "--stacks", "native")
        own = result["plain"]["lines"], self.folder / "libtorch_training.tide"
        for how, (lines, recording) in {"itself": own, "tidemark run": (printed, file)}.items():
            counted = self.said(lines)
            by_pytorch = counted["max_memory_allocated"], counted["max_memory_reserved"]
            recorded = self.peaks(recording, counted["device"])
            self.compare(f"libtorch_training: peaks recorded by {how}", recorded, by_pytorch, "PyTorch")
            steps = self.read("leaks", recording)["steps"]["count"]
            self.compare(f"libtorch_training: steps recorded by {how}", steps, 20, "the program")
            result[how] = {"recorded": recorded, "by_pytorch": by_pytorch, "steps": steps}
        return result

    def held_at_marks(self, file):
        """{mark: growth of the driver's memory on the first GPU since the mark "begin"}."""
        dump = self.check.output(self.check.tidemark, "dump", "--format", "json", file)
        names, changes = {}, []
        for record in map(json.loads, dump.splitlines()):
            kind, what = next(iter(record.items()))
            if kind == "string":
                names[what["id"]] = what["text"]
            elif kind == "event" and what["device"] == "cuda-driver:0":
                changes.append((what["time_ns"], None, what["size"] if what["kind"] == "allocate" else -what["size"]))
            elif kind == "mark" and what["kind"] == "point":
                changes.append((what["time_ns"], what["name"], 0))
        held, now = {}, 0
        for _, mark, change in sorted(changes, key=lambda entry: entry[0]):
            now += change
            if mark is not None:
                held[names[mark]] = now
        return {mark: size - held.get("begin", 0) for mark, size in held.items()}

    def plain_cuda(self, build, cupti):
        """Memory taken by cudaMalloc and a pool, as recorded with --driver on."""
        result = {"plain": self.plain(build, "cuda_training")}
        libraries = {"LD_LIBRARY_PATH": os.pathsep.join([*cupti, os.environ.get("LD_LIBRARY_PATH", "")])} if cupti else {}
        printed, file = self.recorded(build, "cuda_training", "--driver", "on", **libraries)
        known = self.said(printed)["held"]
        held = self.held_at_marks(file)
        self.compare("cuda_training: held at its marks", {mark: held.get(mark) for mark in known}, known, "the program")
        steps = self.read("leaks", file)["steps"]["count"]
        self.compare("cuda_training: steps", steps, 40, "the program")
        return {**result, "held": held, "by_program": known, "steps": steps}

    def run(self):
        prefix = self.installed()
        self.require("the C++ API is installed", prefix is not None, "" if prefix else "scripts/package_cpp.sh adds it")
        if prefix is None:
            self.check.failures += self.problems
            return None
        facts = json.loads(self.check.output(sys.executable, "-c", FACTS))
        build, built = self.build(prefix, facts["cmake"])
        result = {"built": built}
        parts = {"training": lambda: self.plain(build, "training"), "libtorch_training": lambda: self.libtorch(build),
                 "cuda_training": lambda: self.plain_cuda(build, facts["cupti"])}  # fmt: skip
        for name, part in parts.items() if build else ():
            try:
                result[name] = part()
            except (OSError, ValueError, LookupError, subprocess.CalledProcessError) as error:
                self.require(f"{name}: its output and recordings can be read", False, repr(error))
        self.check.failures += self.problems
        return {**result, "problems": self.problems}
