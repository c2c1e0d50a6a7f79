"""Run by scripts/gpu_check.sh: compares peaks with PyTorch's own count, and measures the cost of recording. See there."""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

from gpu_analyses import Advice, Categories
from gpu_batches import Batches
from gpu_examples import Examples
from gpu_guard import Guard
from gpu_monitors import Monitors

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = sys.executable

# name: (stacks, program and options). The program's last line on stdout is JSON with max_memory_allocated and
# max_memory_reserved of its device.
PEAKS = {
    "allocator, no stacks": ("none", ["tests/integration/recorder/peaks_gpu.py"]),
    "allocator, Python stacks": ("python", ["tests/integration/recorder/peaks_gpu.py"]),
    "allocator and a CUDA graph, both stacks": ("both", ["tests/integration/recorder/peaks_gpu.py", "--graph"]),
    "LoRA fine-tuning": ("python", ["examples/lora_finetune.py"]),
    "LoRA fine-tuning, medium, native stacks": ("native", ["examples/lora_finetune.py", "--size", "medium", "--steps", "20"]),
}
# name: options of tests/integration/recorder/released_gpu.py
RELEASED = {"segments": [], "expandable segments": ["expandable_segments:True"]}
# name: (scene of tests/integration/recorder/ledger_gpu.py, environment, whether another process holds 4 GiB meanwhile)
LEDGERS = {
    "LoRA": ("lora", {}, False),
    "LoRA, expandable segments": ("lora", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, False),
    "LoRA, stream-ordered pool": ("lora", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, False),
    "cuBLAS, cuDNN, cuFFT, cuSOLVER": ("libraries", {}, False),
    "CUDA graph": ("graph", {}, False),
    "another process with 4 GiB": ("lora", {}, True),
}
NEIGHBOUR = "import time, torch; held = torch.ones(4 << 30, dtype=torch.uint8, device='cuda'); print(flush=True); time.sleep(600)"
# Programs that are planned and run; their plans are compared with the GPU's values.
VERIFIED = {
    "allocator and training": ["tests/integration/recorder/planned.py"],
    "LoRA fine-tuning": ["examples/lora_finetune.py", "--steps", "4"],
}
# Settings under which tests/integration/phantom/settings.py runs and, from a snapshot with the default ones, is simulated.
SETTINGS = ["max_split_size_mb:32", "roundup_power2_divisions:8", "garbage_collection_threshold:0.6",
            "max_split_size_mb:64,garbage_collection_threshold:0.8", "expandable_segments:True"]
# Settings that recordings have, of the program fragmenting_gpu.py.
RECORDED_SETTINGS = ["max_split_size_mb:64", "roundup_power2_divisions:4", "expandable_segments:True"]
# Effects of a percent on machines that vary by ten.
MANY_SHORT_TURNS = ["--rounds", "200", "--steps", "4"]
# name: (stacks, options of bench/overhead.py, more options of `run`)
COSTS = {
    "example": ("python", ["--workload", "example", "--device", "cuda"]),
    "dense": ("python", ["--workload", "dense", "--device", "cuda"]),
    "hf-lora, beside PyTorch's history": ("python", ["--workload", "hf-lora", "--device", "cuda", "--rounds", "20", "--peers"]),
    "hf-lora": ("python", ["--workload", "hf-lora", "--device", "cuda", *MANY_SHORT_TURNS]),
    "hf-lora, without attribution": ("python", ["--workload", "hf-lora", "--device", "cuda", *MANY_SHORT_TURNS], "--attribute", "off"),
    "hf-lora, beside MemTracker": ("python", ["--workload", "hf-lora", "--device", "cuda", "--rounds", "5", "--steps", "3", "--trackers"]),
    "hf-lora, driver memory": ("none", ["--workload", "hf-lora", "--device", "cuda", *MANY_SHORT_TURNS], "--driver", "on"),
    "hf-lora, both stacks": ("both", ["--workload", "hf-lora", "--device", "cuda", *MANY_SHORT_TURNS]),
}


class Check:
    def __init__(self, tidemark, results):
        self.tidemark = tidemark
        self.results = results
        self.text = open(results / "gpu_check.txt", "w")
        self.failures = 0

    def say(self, line):
        print(line, flush=True)
        print(line, file=self.text, flush=True)

    def output(self, *command):
        """The command's stdout. Raises an exception if it fails."""
        done = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def record(self, name, stacks, program):
        file = self.results / "check.tide"
        printed = self.output(self.tidemark, "run", "-q", "-f", "-o", file, "--stacks", stacks, "--", PYTHON, *program)
        summary = json.loads(self.output(self.tidemark, "summary", "--format", "json", file))
        file.unlink()
        return printed, summary

    def peaks(self, name, stacks, program):
        """Recorded peaks equal those printed by the program, and the program prints the same without recording."""
        plain = json.loads(self.output(PYTHON, *program).splitlines()[-1])
        printed, summary = self.record(name, stacks, program)
        counted = json.loads(printed.splitlines()[-1])
        recorded = next(device for device in summary["devices"] if device["device"] == counted["device"])
        rows = {
            "peak allocated": (counted["max_memory_allocated"], recorded["peak_allocated_bytes"]),
            "peak reserved": (counted["max_memory_reserved"], recorded["peak_reserved_bytes"]),
        }
        if "num_ooms" in counted:
            rows["failed requests"] = counted["num_ooms"], recorded["out_of_memory_count"]
        for what, (theirs, ours) in rows.items():
            verdict = "equal" if theirs == ours else "DIFFERENT"
            self.say(f"{name}: {what} {theirs:,} by PyTorch, {ours:,} recorded: {verdict}")
            self.failures += theirs != ours
        if plain != counted:
            # Threads make the order of allocations, and so the peaks, vary between runs of some programs.
            self.say(f"{name}: without tidemark the program printed {plain}")
        return {
            "stacks": stacks,
            "program": program,
            "by_pytorch": counted,
            "by_pytorch_without_tidemark": plain,
            "recorded": recorded,
            "event_count": summary["event_count"],
            "data_quality": summary["data_quality"],
        }

    def released(self, name, *options):
        """Reserved and pinned memory at marks after a release without a block: PyTorch's counters, and recorded."""
        file = self.results / "released.tide"
        run = [self.tidemark, "run", "-q", "-f", "-o", file, "--", PYTHON, "tests/integration/recorder/released_gpu.py", *options]
        moments = json.loads(self.output(*run).splitlines()[-1])["moments"]
        records = [json.loads(line) for line in self.output(self.tidemark, "dump", "--format", "json", file).splitlines()]
        file.unlink()
        strings = {record["string"]["id"]: record["string"]["text"] for record in records if "string" in record}
        times = {strings[record["mark"]["name"]]: record["mark"]["time_ns"] for record in records if "mark" in record}
        events = [record["event"] for record in records if "event" in record]
        found = {}
        for moment, counted in moments.items():
            before = [event for event in events if event["time_ns"] <= times[moment]]
            totals = [event for event in before if event.get("device") == "cuda:0" and "total_reserved" in event][-1]
            host = [event for event in before if event.get("device") == "cuda-host"]
            pinned = sum(event["size"] if event["kind"] == "allocate" else -event["size"] for event in host)
            found[moment] = {"allocated": totals["total_allocated"], "reserved": totals["total_reserved"], "pinned": pinned}
            same = all(counted[key] in (None, value) for key, value in found[moment].items())
            figures = ", ".join(f"{key} {counted[key]} by PyTorch, {value} recorded" for key, value in found[moment].items())
            self.say(f"released, {name}: {moment}: {figures}: {'equal' if same else 'DIFFERENT'}")
            self.failures += not same
        return {"by_pytorch": moments, "recorded": found}

    def devices(self):
        """Values of `devices` and the samples for the first GPU, compared with nvidia-smi and torch.cuda.mem_get_info."""
        fields = "memory.total,memory.used,memory.reserved"
        query = ["nvidia-smi", "--id=0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        before = [int(field) for field in self.output(*query).split(",")]
        listed = json.loads(self.output(self.tidemark, "devices", "--format", "json"))["devices"][0]
        ours = [listed[f"{name}_bytes"] >> 20 for name in ("total", "used", "driver_reserved")]
        self.say(f"devices: total, used, kept by the driver in MiB: {ours}; nvidia-smi: {before}")
        self.failures += ours[0] != before[0] or abs(ours[1] - before[1]) > 64 or abs(ours[2] - before[2]) > 1

        file = self.results / "samples.tide"
        printed = self.output(self.tidemark, "run", "-q", "-f", "-o", file, "--", PYTHON, "tests/integration/recorder/holds_gpu.py")
        counted = json.loads(printed.splitlines()[-1])
        records = [json.loads(line) for line in self.output(self.tidemark, "dump", "--format", "json", file).splitlines()]
        file.unlink()
        samples = [record["device_sample"] for record in records if "device_sample" in record]
        gpu = next(record["sampled_device"] for record in records if "sampled_device" in record)
        lists = [record["device_processes"] for record in records if "device_processes" in record]
        processes = [process for listed in lists for process in listed["processes"]]
        most = max(sample["used_bytes"] for sample in samples)
        free = gpu["total_bytes"] - most - max(sample["driver_reserved_bytes"] for sample in samples)
        own = max((process["bytes"] or 0 for process in processes if process["kind"] == "recorded"), default=None)
        span = (samples[-1]["time_ns"] - samples[0]["time_ns"]) / 1e9
        self.say(f"samples: {len(samples)} in {span:.1f} s; most used {most:,}, free {free:,} by mem_get_info {counted['free']:,}")
        self.say(f"samples: the process held {own if own is None else format(own, ',')}, of that {counted['reserved']:,} by PyTorch")
        self.failures += abs(free - counted["free"]) > 64 << 20 or own is None or own < counted["reserved"]
        doctor = json.loads(self.output(self.tidemark, "doctor", "--format", "json", "--", PYTHON))
        for check in doctor["checks"]:
            self.say(f"doctor: {check['status']}: {check['text']}")
        return {"devices": ours, "nvidia_smi": before, "samples": len(samples), "free": free, "by_pytorch": counted, "own": own,
                "doctor": doctor}

    def ledger_of(self, name, file, counted, expected_libraries=()):
        """The ledger adds up at the peak, and at the program's mark, where it agrees with CUDA's and PyTorch's values."""
        found, problems = {}, []
        for at in ("peak", "held"):
            command = [self.tidemark, "ledger", "--device", counted["device"], "--at", at, file]
            self.say(self.output(*command).rstrip())
            ledger = json.loads(self.output(*command[:2], "--format", "json", *command[2:]))["devices"][0]["ledger"]
            found[at] = ledger
            unexplained, used = ledger["unexplained_bytes"], ledger["used_bytes"]
            if unexplained is None or abs(unexplained) >= 0.01 * used:
                problems.append(f"1% or more is not explained at the {at}")
        lines = found["held"]["lines"]
        libraries = {line["name"]: line["bytes"] for line in lines if line["part"] == "library"}
        reserved = sum(line["bytes"] for line in lines if line["part"] == "pytorch")
        if reserved != counted["reserved"]:
            problems.append("reserved is not what PyTorch says")
        # mem_get_info may count the driver's own memory as used; NVML does not.
        kept = counted["total"] - counted["free"] - found["held"]["used_bytes"]
        if not -(1 << 20) <= kept < 1 << 30:
            problems.append("used is not what mem_get_info says")
        problems += [f"no memory of {library}" for library in expected_libraries if not libraries.get(library)]
        self.failures += len(problems)
        shares = ", ".join(f"{ledger['unexplained_bytes'] or 0:,} of {ledger['used_bytes']:,} ({at})" for at, ledger in found.items())
        self.say(f"ledger, {name}: unexplained {shares}; used by mem_get_info {kept:+,}, reserved by PyTorch "
                 f"{counted['reserved'] - reserved:+,}: {', '.join(problems) or 'as it should be'}")
        return {"ledgers": found, "by_pytorch": counted, "problems": problems}

    def ledger(self, name, scene, environment, neighbour):
        file = self.results / "ledger.tide"
        run = [self.tidemark, "run", "-q", "-f", "-o", file, "--driver", "on", "--", PYTHON, "tests/integration/recorder/ledger_gpu.py", scene]
        other = subprocess.Popen([PYTHON, "-c", NEIGHBOUR], stdout=subprocess.PIPE) if neighbour else None
        try:
            if other is not None:
                other.stdout.readline()  # its memory is allocated now
            os.environ.update(environment)
            return self.ledger_of(name, file, json.loads(self.output(*run).splitlines()[-1]))
        finally:
            for variable in environment:
                del os.environ[variable]
            if other is not None:
                other.kill()
                other.wait()

    def ledger_of_ranks(self):
        """Two GPUs with NCCL: a recording of each rank."""
        file = self.results / "ranks.tide"
        for old in self.results.glob("ranks*.tide"):
            old.unlink()
        program = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "tests/integration/recorder/ledger_gpu.py", "nccl"]
        printed = self.output(self.tidemark, "run", "-q", "-f", "-o", file, "--driver", "on", "--", PYTHON, *program)
        counted = {line["device"]: line for line in map(json.loads, printed.splitlines())}
        found = {}
        for recording in sorted(self.results.glob("ranks*.tide")):
            rank = json.loads(self.output(self.tidemark, "summary", "--format", "json", recording))["process"]["local_rank"]
            if rank is not None and f"cuda:{rank}" in counted:
                found[rank] = self.ledger_of(f"rank {rank} of 2, NCCL", recording, counted[f"cuda:{rank}"], ["NCCL"])
        self.failures += len(found) != 2
        return found

    def driver_calls(self):
        """Changes of the device's memory are recorded with the program's own values; frees that the driver refuses do not count."""
        file = self.results / "driver_calls.tide"
        run = [self.tidemark, "run", "-q", "-f", "-o", file, "--no-samples", "--driver", "on", "--", PYTHON]
        said = json.loads(self.output(*run, "tests/integration/recorder/driver_calls_gpu.py").splitlines()[-1])
        records = [json.loads(line) for line in self.output(self.tidemark, "dump", "--format", "json", file).splitlines()]
        events = [record["event"] for record in records if record.get("event", {}).get("device") == "cuda-driver:0"]
        # A pool that shrinks is a free and an allocation of the rest, at one time.
        changes = [sum(event["size"] if event["kind"] == "allocate" else -event["size"] for event in at_once)
                   for _, at_once in itertools.groupby(events, key=lambda event: event["time_ns"])]
        known = [change for change in said["changes"] if change]
        problems = [f"not refused: {call}" for call, result in said["refusals"].items() if result == 0]
        problems += [f"recorded {changes}, by the program {known}"] if changes != known else []
        problems += [f"a tool with a handle did not get CUPTI: {said['subscribed_by_handle']}"] if said["subscribed_by_handle"] != 0 else []
        for array in said["arrays"]:
            self.say(f"array, {array['array']}: elements of {array['bytes_of_elements']:,} bytes, "
                     f"{array['taken_from_device']:,} taken from the device")
        self.say(f"driver calls: {len(changes)} changes; refused with {said['refusals']}: {', '.join(problems) or 'as it should be'}")
        self.failures += len(problems)
        return {"recorded": changes, "by_program": said, "problems": problems, "costs": [self.call_costs() for _ in range(3)]}

    def plan(self, name, program):
        """`plan --verify`: exit code 1, if the peaks are more than 1% off, is a failure and a result."""
        command = [self.tidemark, "plan", "--verify", "--format", "json", "--", PYTHON, *program]
        done = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        self.failures += done.returncode != 0
        if done.returncode == 2:
            self.say(f"plan of {name}: failed")
            return None
        result = json.loads(done.stdout)
        for device in result["devices"]:
            planned, real = device["planned"], device["real"]
            figures = ", ".join(f"{key} {planned[key]:,} planned, {real[key]:,} real" for key in planned)
            difference = device["first_difference"]
            where = f"first difference at event {difference['index']} of {device['event_count']}" if difference else "every event equal"
            self.say(f"plan of {name}: {device['device']}: {figures}; {where}")
        return result

    def settings(self):
        """Peak reserved memory under other settings of the allocator: simulated, by PyTorch and by the model, and measured."""
        snapshot = self.results / "settings.pickle"
        measured = json.loads(self.output(PYTHON, "tests/integration/phantom/settings.py", snapshot, "", *SETTINGS).splitlines()[-1])
        sets = [option for settings in SETTINGS for option in ("--set", settings)]
        result = {}
        for allocator in ("pytorch", "model"):
            simulated = json.loads(self.output(
                self.tidemark, "simulate", snapshot, *sets, "--memory", measured["limit_bytes"], "--allocator", allocator, "--python", PYTHON,
                "--format", "json"))
            for run in [simulated["as_recorded"], *simulated["runs"]]:
                real = measured["settings"][run["settings"]]
                off = run["peak_reserved_bytes"] - real["peak_reserved_bytes"]
                allowed = real["peak_reserved_bytes"] // 100 if "expandable" in run["settings"] else 0
                fine = abs(off) <= allowed
                self.failures += not fine and allocator == "pytorch"
                result[f"{allocator} {run['settings']}"] = {"measured": real, "off_bytes": off, "retry_count": run["retry_count"]}
                self.say(f"settings  {run['settings'] or 'default':55} {allocator:8} reserved {real['peak_reserved_bytes']:,} simulated {off:+,}"
                         f"{'' if fine else '  DIFFERS'}")
        return {**result, **{f"recorded {settings}": self.recorded_settings(settings) for settings in ["", *RECORDED_SETTINGS]}}

    def recorded_settings(self, settings):
        """Peak reserved memory of a recording, replayed with the settings that the recording has, and PyTorch's count."""
        file = self.results / "settings.tide"
        environment = {**os.environ, **({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})}
        command = [self.tidemark, "run", "--force", "-o", file, "--", PYTHON, "tests/integration/recorder/fragmenting_gpu.py"]
        done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        real = json.loads(done.stdout.splitlines()[-1])["max_memory_reserved"]
        found = json.loads(self.output(self.tidemark, "simulate", file, "--search", "--allocator", "model", "--format", "json"))["as_recorded"]
        off = found["peak_reserved_bytes"] - real
        self.failures += found["settings"] != settings or off != 0
        self.say(f"settings  of a recording: {found['settings'] or 'default':40} reserved {real:,} simulated {off:+,}")
        return {"settings": found["settings"], "measured": real, "off_bytes": off}

    def measured(self, name, folder="bench"):
        """The figures of FOLDER/NAME.py, which fails if they miss their target."""
        figures = self.results / f"{name}.json"
        figures.unlink(missing_ok=True)
        command = [PYTHON, f"{folder}/{name}.py", "--json", figures]
        done = subprocess.run(command, cwd=ROOT, env=self.with_package(), stdout=subprocess.PIPE, text=True, check=False)
        self.say(done.stdout.rstrip())
        self.failures += done.returncode != 0
        if not figures.exists():
            return {"error": f"exit code {done.returncode}"}
        result = json.loads(figures.read_text())
        figures.unlink()
        return result

    def with_package(self):
        """The environment in which `import tidemark` finds the package built with the program."""
        before = {"PYTHONPATH": self.tidemark.parent.parent / "python", "PATH": self.tidemark.parent}
        environment = {name: os.pathsep.join([str(folder), os.environ.get(name, "")]) for name, folder in before.items()}
        return {**os.environ, **environment}

    def package(self):
        """The Python package's tests that need a GPU, without the phantom one; and the cost of an event of its profiler."""
        environment = {**self.with_package(), "TIDEMARK_GPU_PYTHON": PYTHON}
        files = [str(file) for file in sorted(ROOT.glob("python/tests/test_*.py")) if "@needs_gpu" in file.read_text()]
        result = {}
        for name, command in {
            "tests": ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-k", "gpu and not two_gpus", *files],
            "event profiler": ["bench/event_profiler.py"],
        }.items():
            done = subprocess.run([PYTHON, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
            self.say(done.stdout.rstrip())
            self.failures += done.returncode != 0
            result[name] = done.stdout.splitlines()
        return result

    def call_costs(self):
        figures, recording = self.results / "calls.json", self.results / "calls.tide"
        run = [self.tidemark, "run", "-q", "-f", "-o", recording, "--driver", "on", "--", PYTHON, "bench/driver_calls.py"]
        self.say(self.output(*run, "--json", figures).rstrip())
        result = json.loads(figures.read_text())
        for file in (figures, recording):
            file.unlink()
        return result

    def cost(self, name, stacks, options, *run_options):
        figures, recording = self.results / "cost.json", self.results / "cost.tide"
        command = ["run", "-q", "-f", "-o", recording, "--stacks", stacks, *run_options, "--", PYTHON, "bench/overhead.py"]
        try:
            self.say(self.output(self.tidemark, *command, *options, "--json", figures).rstrip())
            result = json.loads(figures.read_text())
            result["recording_bytes"] = recording.stat().st_size
            return result
        except subprocess.CalledProcessError as error:
            self.say(f"cost of {name}: not measured: {error}")
            self.failures += 1
            return {"error": str(error)}
        finally:
            for file in (figures, recording):
                file.unlink(missing_ok=True)


def parts(check):
    """The checks and measurements, by their names for --only; in this order, without --only."""
    gpus = int(check.output(PYTHON, "-c", "import torch; print(torch.cuda.device_count())"))

    def of_each(work, cases):
        return lambda: {name: work(name, *how) for name, how in cases.items()}

    def ledgers():
        return {**of_each(check.ledger, LEDGERS)(), **({"NCCL": check.ledger_of_ranks()} if gpus > 1 else {})}

    return {
        "devices": check.devices,
        "peaks": of_each(check.peaks, PEAKS),
        "released": of_each(check.released, RELEASED),
        "ledgers": ledgers,
        "costs": of_each(check.cost, COSTS),
        "plan": lambda: {name: check.plan(name, program) for name, program in VERIFIED.items()},
        "driver_calls": check.driver_calls,
        "settings": check.settings,
        "categories": lambda: Categories(check, gpus).run(),
        "advice": lambda: Advice(check, gpus).run(),
        "anomalies": lambda: check.measured("anomalies"),
        "loaders": lambda: {"conversions": check.measured("gpu_conversions", "scripts"), "step times": check.measured("loaders")},
        "package": check.package,
        "monitors": lambda: Monitors(check, ROOT).run(),
        "batches": lambda: Batches(check, ROOT).run(),
        "guard": lambda: Guard(check, ROOT, gpus).run(),
        "examples": lambda: Examples(check, ROOT).run(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", required=True, type=pathlib.Path)
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("--only", metavar="PART", help="a part of it, where a command may not run for long")
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    check = Check(args.tidemark.resolve(), args.results.resolve())
    available = parts(check)
    if args.only not in (None, *available):
        parser.error(f"--only {args.only}: there are {', '.join(available)}")

    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    machine = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "gpu": check.output(*query).strip(),
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "torch": check.output(PYTHON, "-c", "import torch; print(torch.__version__)").strip(),
        "tidemark": check.output(check.tidemark, "--version").strip(),
    }
    check.say(", ".join(f"{key} {value}" for key, value in machine.items()))
    report = {"machine": machine, **{name: run() for name, run in available.items() if args.only in (None, name)}}
    check.say("all checks passed" if not check.failures else f"{check.failures} checks failed")
    (check.results / "gpu_check.json").write_text(json.dumps({**report, "failures": check.failures}, indent=1) + "\n")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
