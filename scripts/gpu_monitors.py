"""The monitors beside a training on a real GPU, compared with PyTorch and nvidia-smi; for scripts/gpu_check.py."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import urllib.request

MIB = 1 << 20
SECONDS = 8.0  # of each round
DEADLINE = 60.0  # for actions that should take a moment
# The driver's own numbers may differ by this much between two readings.
DRIVER_SLACK = 64 * MIB
MONITORS = {
    "profile": ["--interval", "0.5", "--plot"],
    "fragment": ["--interval", "0.5"],
    "oom": ["--interval", "0.1"],
    "leak": ["--interval", "0.1", "--enable-tracking"],
}


PINNED = [64 * MIB, 16 * MIB]
PINNING = f"""
import sys, torch
held = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for size in {PINNED}]
print(flush=True)
sys.stdin.readline()
"""


def start_recorded(tidemark, root, file, *program, options=()):
    """Python with these arguments under `tidemark run`; it reads and writes lines."""
    command = [tidemark, "run", "-q", "-f", *options, "-o", file, "--", sys.executable, *program]
    return subprocess.Popen(
        [str(part) for part in command], cwd=root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


class Training:
    """tests/integration/recorder/monitored_gpu.py under `tidemark run`, controlled by lines."""

    def __init__(self, tidemark, root, file):
        self.process = start_recorded(tidemark, root, file, "tests/integration/recorder/monitored_gpu.py")
        self.ready = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the training ended with exit code {self.process.wait()}")
        return json.loads(line)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait()


class Monitors:
    """`check` counts failures and prints lines (gpu_check.Check)."""

    def __init__(self, check, root):
        self.check, self.root = check, root
        self.folder = check.results / "monitors"
        self.folder.mkdir(exist_ok=True)
        self.problems = 0

    def compare(self, what, ours, theirs, slack=0, whose="PyTorch"):
        known = ours is not None and theirs is not None
        fine = known and abs(ours - theirs) <= slack
        self.problems += not fine
        shown = [f"{value:,}" if isinstance(value, int) else str(value) for value in (ours, theirs)]
        verdict = "as it should be" if fine else "DIFFERENT"
        self.check.say(f"monitors  {what}: {shown[0]}, by {whose} {shown[1]}: {verdict}")

    def require(self, what, fine, detail=""):
        self.problems += not fine
        self.check.say(f"monitors  {what}: {'as it should be' if fine else 'WRONG'}{f' ({detail})' if detail else ''}")

    def tidemark(self, *arguments):
        return [str(self.check.tidemark), *map(str, arguments)]

    def start(self, name, *arguments):
        with (self.folder / f"{name}.txt").open("w") as output, (self.folder / f"{name}.err").open("w") as errors:
            return subprocess.Popen(self.tidemark(name, *arguments), cwd=self.root, stdout=output, stderr=errors)

    def report(self, name):
        return json.loads((self.folder / f"{name}.json").read_text())

    def smi(self, query, *fields):
        done = subprocess.run(
            ["nvidia-smi", *query, f"--query-{fields[0]}", "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]

    def gpu(self):
        """The first CUDA device in the output of `tidemark devices`."""
        devices = json.loads(self.check.output(self.check.tidemark, "devices", "--format", "json"))["devices"]
        mine = [device for device in devices if device.get("cuda_index") == 0] or devices
        return mine[0]

    def run_round(self, names, seconds, *more):
        """Runs these monitors concurrently with the training; returns their reports."""
        return {
            name: self.start(name, "--duration", seconds, "--output", self.folder / f"{name}.json", *MONITORS[name], *more,
                             *(["--history", self.folder / "history.db"] if name == "oom" else []))
            for name in names
        }  # fmt: skip

    def finish(self, running):
        for name, process in running.items():
            code = process.wait(timeout=DEADLINE)
            errors = (self.folder / f"{name}.err").read_text().strip()
            self.require(f"{name}: exit code {code}", code == 0, errors)

    def page(self, url, name):
        """The metrics once they contain the given name: a second or two after the training was stopped."""
        end = time.monotonic() + DEADLINE
        while True:
            with urllib.request.urlopen(url) as answer:
                text = answer.read().decode()
            if name in text or time.monotonic() > end:
                return text
            time.sleep(0.2)

    @staticmethod
    def values(page, name, **labels):
        """{last label's value: number} of a metric's samples that have these labels."""
        found = {}
        for line in page.splitlines():
            match = re.fullmatch(re.escape(name) + r"\{(.*)\} (\S+)", line)
            if match and all(f'{label}="{value}"' in match[1] for label, value in labels.items()):
                found[match[1].rsplit('="', 1)[1].rstrip('"')] = int(float(match[2]))
        return found

    def exporter_url(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            match = re.search(r"metrics at (\S+)", (self.folder / "exporter.err").read_text())
            if match:
                return match[1]
            time.sleep(0.1)
        raise RuntimeError("the exporter said no address: " + (self.folder / "exporter.err").read_text())

    def check_metrics(self, page, held, gpu):
        uuid = gpu["uuid"]
        (listed,) = self.smi([f"--id={uuid}"], "gpu=memory.total,memory.used,memory.reserved")
        total, used, reserved = (int(cell) * MIB for cell in listed)
        one = lambda name, **labels: next(iter(self.values(page, name, **labels).values()), None)  # noqa: E731
        self.compare("exporter, size of the GPU", one("hw_gpu_memory_limit_bytes", hw_id=uuid), total, MIB, "nvidia-smi")
        exported = one("hw_gpu_memory_usage_bytes", hw_id=uuid)
        self.compare("exporter, used of the GPU", exported, used, DRIVER_SLACK, "nvidia-smi")
        kept = one("tidemark_gpu_memory_driver_reserved_bytes", hw_id=uuid)
        free = None if exported is None else total - exported - (kept if kept is not None else reserved)
        self.compare("exporter, free of the GPU", free, held["free"], DRIVER_SLACK, "torch.cuda.mem_get_info")
        apps = self.smi([f"--id={uuid}"], "compute-apps=pid,used_memory")
        by_smi = next((int(size) * MIB for pid, size in apps if pid == str(held["pid"]) and size.isdigit()), None)
        if by_smi is None:
            self.check.say(
                "monitors  exporter, GPU memory of the process: nvidia-smi does not list it here (a container?): not compared"
            )
        else:
            ours = one("tidemark_process_gpu_memory_usage_bytes", process_pid=held["pid"], hw_id=uuid)
            self.compare("exporter, GPU memory of the process", ours, by_smi, 2 * MIB, "nvidia-smi")
        mine = {"process_pid": held["pid"], "tidemark_device": "cuda:0"}
        self.compare("exporter, allocated", one("tidemark_framework_memory_allocated_bytes", **mine), held["allocated"])
        self.compare("exporter, reserved", one("tidemark_framework_memory_reserved_bytes", **mine), held["reserved"])
        categories = self.values(page, "tidemark_framework_memory_category_bytes", **mine)
        self.compare("exporter, sum of the categories", sum(categories.values()) if categories else None, held["allocated"])
        for name, size in held["tensors"].items():
            # Blocks are larger than their tensors: rounded up, and the rest of a large one is not split off.
            self.compare(f"exporter, {name}", categories.get(name), size, max(size // 10, 64 * 1024))
        return {"used": exported, "nvidia_smi": listed, "categories": categories}

    def check_reports(self, held, gpu, key):
        profile, oom, leak = self.report("profile"), self.report("oom"), self.report("leak")
        (listed,) = self.smi([f"--id={gpu['uuid']}"], "gpu=memory.total,memory.used")
        device = profile["devices"][key]
        self.compare("profile, total", device["current_memory"]["total"], int(listed[0]) * MIB, MIB, "nvidia-smi")
        self.compare("profile, used", device["current_memory"]["allocated"], int(listed[1]) * MIB, DRIVER_SLACK, "nvidia-smi")
        self.require("profile, peak at least what is used", device["peak_memory"] >= device["current_memory"]["allocated"])
        self.require("profile, its picture", (self.folder / "profile.png").read_bytes().startswith(b"\x89PNG"))
        recorded = self.of_training(profile, held)
        for name in ("allocated", "reserved", "peak_allocated", "peak_reserved"):
            self.compare(f"profile, {name.replace('_', ' ')} of the training", recorded.get(f"{name}_bytes"), held[name])
        recorded = self.of_training(self.report("fragment"), held)
        unused = 1 - held["allocated"] / held["reserved"]
        ours = None if not recorded.get("reserved_bytes") else 1 - recorded["allocated_bytes"] / recorded["reserved_bytes"]
        self.compare("fragment, share of reserved memory that is not allocated", ours, unused, 1e-9)
        risk = oom["devices"][key]["risk_assessment"]
        share = 100 * device["current_memory"]["allocated"] / oom["devices"][key]["limit_bytes"]
        self.compare("oom, percent in use", risk["current_usage_percent"], share, 1, "profile")
        self.require("oom, a training that does not grow is no risk", risk["risk_level"] == "low", risk["recommendation"])
        growing = [row["title"] for row in leak["growth"] if row["verdict"] == "growing" and row["memory"] == "allocated"]
        self.require("leak, a training that does not grow has none", not growing, "; ".join(growing))
        history = json.loads(self.check.output(self.check.tidemark, "history", self.folder / "history.db", "--format", "json"))
        past = next(row for row in history["devices"] if row["device"] == key)
        self.compare("history, peak of the GPU", past["peak_bytes"], oom["devices"][key]["peak_memory"], whose="oom")
        return {"profile": device, "risk": risk}

    @staticmethod
    def of_training(report, held):
        rows = [row["devices"] for row in report["recorded"] if row["pid"] == held["pid"]]
        return rows[0].get("cuda:0", {}) if rows else {}

    def check_leak(self, running, began, leaking):
        ended = leaking.tell("hold")
        self.finish(running)
        rows = [
            row
            for row in self.report("leak")["growth"]
            if row["memory"] == "allocated" and row["pid"] == ended["pid"] and row["device"] != "cpu"
        ]
        per_step = (ended["allocated"] - began["allocated"]) / (ended["steps"] - began["steps"])
        for row in rows:
            self.require(
                "leak, kept losses grow", row["verdict"] == "growing", f"{row['growth_mb_per_minute']:,.0f} MiB a minute"
            )
        self.require("leak, the training is among what is looked at", bool(rows))
        sources = self.report("leak")["tracking"]["sources"]
        text = json.dumps([source for source in sources if source["pid"] == ended["pid"]])
        self.require("leak, names the program's line", "monitored_gpu.py" in text)
        self.check.say(f"monitors  leak: the program kept {per_step:,.0f} bytes a step")
        return {"bytes_a_step_by_pytorch": per_step, "growth": rows}

    def check_screens(self, held, gpu):
        prompt = "devices\nprocesses memory\nholders category\nquit\n"
        done = subprocess.run(
            self.tidemark("top", "--interval", "0.2"), input=prompt, text=True, capture_output=True, timeout=DEADLINE
        )
        (self.folder / "top.txt").write_text(done.stdout)
        for text in (gpu["name"], "parameter", f"PID {held['pid']}"):
            self.require(f"top, says {text!r}", text in done.stdout)
        self.require("top, exit code 0", done.returncode == 0, done.stderr.strip())
        first, values, code = self.full_screen()
        self.check.say(
            f"monitors  interactive: first screen after {first * 1000:.0f} ms, the GPU's values after {values * 1000:.0f} ms"
        )
        self.require("interactive, ends with q", code == 0, f"exit code {code}")
        return {"first_screen_seconds": first, "first_values_seconds": values}

    def full_screen(self):
        """In a pseudo-terminal of 80x24: waits for the first bytes of the screen, and for a size; then sends q."""
        began = time.monotonic()
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(str(self.check.tidemark), [str(self.check.tidemark), "interactive"])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        seen, first, end = b"", None, began + DEADLINE
        while time.monotonic() < end and b"iB of" not in seen:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 65536)
                first = first or time.monotonic() - began
        values = time.monotonic() - began
        os.write(terminal, b"q")
        while True:
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:  # the other end is closed
                break
        return first or 0.0, values, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def check_pinned(self):
        """Page-locked memory of a program with recorded driver calls."""
        file = self.folder / "pinned.tide"
        program = start_recorded(self.check.tidemark, self.root, file, "-c", PINNING, options=["--driver", "on"])
        program.stdout.readline()
        monitor = self.start("profile", "--duration", 4, "--pid", program.pid, "--output", self.folder / "pinned.json")
        self.finish({"profile": monitor})
        prompt = subprocess.run(
            self.tidemark("interactive"), input="host\n", stdout=subprocess.PIPE, text=True, timeout=DEADLINE, check=True
        )
        shown = f"{sum(PINNED) / MIB:.1f} MiB pinned for CUDA"
        self.require(f"interactive, host: {shown}", shown in prompt.stdout, prompt.stdout)
        program.communicate("\n")
        (recorded,) = self.report("pinned")["recorded"]
        self.compare("page-locked memory", recorded["cuda_pinned_bytes"], sum(PINNED))
        host = [line for line in (self.folder / "profile.txt").read_text().splitlines() if line.startswith("Host memory")]
        self.check.say(f"monitors  {host[0] if host else 'no line about the host'}")
        return recorded["cuda_pinned_bytes"]

    def run(self):
        gpu = self.gpu()
        key = str(gpu["index"])
        training = Training(self.check.tidemark, self.root, self.folder / "training.tide")
        exporter = self.start("exporter", "--listen", "127.0.0.1:0", "--interval", "0.2")
        try:
            url = self.exporter_url()
            training.tell("go")
            running = self.run_round(["profile", "fragment", "oom", "leak"], SECONDS)
            time.sleep(SECONDS / 2)
            held = training.tell("hold")
            self.finish(running)  # their last values are of a training that is paused
            result = {"by_pytorch": held}
            time.sleep(3)  # metrics are made every second, categories every two
            result["metrics"] = self.check_metrics(self.page(url, "tidemark_framework_memory_category_bytes"), held, gpu)
            result["reports"] = self.check_reports(held, gpu, key)
            result["screens"] = self.check_screens(held, gpu)
            began = training.tell("leak")
            running = self.run_round(["leak"], SECONDS)
            time.sleep(SECONDS)
            result["leak"] = self.check_leak(running, began, training)
            result["pinned_bytes"] = self.check_pinned()
            return result
        finally:
            exporter.terminate()
            self.require("exporter, ends with SIGTERM", exporter.wait(timeout=DEADLINE) == 0)
            self.require("training, exit code 0", training.close() == 0)
            self.check.failures += self.problems
