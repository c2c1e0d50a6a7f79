"""The memory manager on a real GPU, compared with PyTorch's counters: sizes, retries, checkpointing; for scripts/gpu_check.py."""

import json
import subprocess
import sys

PROGRAM = "tests/integration/recorder/batches_gpu.py"
MODELS = ["mlp", "convnet", "llama"]
SECONDS = 240  # of one program
MARGIN = 0.05
PROBES = 8
# With a plan. If a plan of three steps fails far below the limit, more sizes are tried on the GPU.
PLANNED_PROBES = {"mlp": 2, "convnet": 4, "llama": 2}
# Gradients have double precision, and are sums of parts.
ROUNDING = 1e-9


class Batches:
    """`check` counts failures and prints lines (gpu_check.Check)."""

    def __init__(self, check, root):
        self.check, self.root = check, root

    def require(self, what, fine, detail):
        self.check.failures += not fine
        self.check.say(f"batches  {what}: {detail}: {'as it should be' if fine else 'WRONG'}")

    def start(self, *arguments):
        command = [sys.executable, PROGRAM, *arguments]
        return subprocess.Popen(command, cwd=self.root, env=self.check.with_package(), stdout=subprocess.PIPE, text=True)

    def answer(self, running):
        try:
            printed = running.communicate(timeout=SECONDS)[0].splitlines()
        except subprocess.TimeoutExpired:
            running.kill()
            printed = running.communicate()[0].splitlines()
        if running.returncode != 0 or not printed:
            self.require(" ".join(running.args[2:]), False, f"exit code {running.returncode}")
            return None
        return json.loads(printed[-1])

    def sizes(self, model, told):
        largest, training = told["largest"], told["training"]
        for how, most in (("searched", PROBES), ("planned", PLANNED_PROBES[model])):
            one = told[how]
            one["error"] = 1 - (one["batch_size"] or 0) / largest
            fine = 0 <= one["error"] <= MARGIN and len(one["probes"]) <= most
            self.require(
                f"{model}, {how}", fine,
                f"{one['batch_size']} of {largest}, {one['error']:.1%} below, {len(one['probes'])} steps on the GPU "
                f"({one['failed']} without the memory), {len(one['planned'])} planned; {one['ended']}",
            )
        fits = ", ".join(f"{size}: {'fits' if fits else 'does not fit'}" for size, fits in training.items())
        self.check.say(f"batches  {model}, three steps in a program of its own: {fits}")
        tried = {size: peak for size, fits, peak in told["planned"]["planned"] if fits}
        for size, fits, peak in told["planned"]["probes"][-1:]:
            if fits and tried.get(size):
                off = peak / tried[size] - 1
                self.check.say(f"batches  {model}: peak {peak:,} of {size} samples, planned {tried[size]:,}, {off:+.2%}")

    def retry(self, told):
        before, after, parts = told["before"], told["after"], told["parts"]
        self.require("retry_on_oom, memory ran out", parts["retries"] > 0 and told["whole"]["retries"] == 0,
                     f"{parts['retries']} times, micro-batches of {parts['size']}")
        error = told["largest_relative_difference"]
        self.require("retry_on_oom, gradients of the parts and of the whole batch", error <= ROUNDING, f"{error:.1e} apart")
        for name in before:
            detail = f"{after[name]:,} bytes, before {before[name]:,}"
            self.require(f"retry_on_oom, {name} afterwards", before[name] == after[name], detail)

    def optimize(self, model, told):
        for which, said in zip(("before", "after"), told["said"]):
            fine = said is not None and abs(said - told[which]) <= MARGIN * told[which]
            self.require(f"optimize_memory, {model}, peak {which}", fine, f"{told[which]:,} by PyTorch, said {said or 0:,}")
        saved = 1 - told["after"] / told["before"]
        fine = told["after"] < told["before"] and bool(told["checkpointed"])
        self.require(f"optimize_memory, {model}, checkpointing", fine, f"{saved:.0%} less; {' '.join(told['notes'])}")

    def run(self):
        # Concurrently: each keeps to a part of the GPU's memory, and planning runs on the host.
        running = {model: self.start("sizes", model) for model in MODELS}
        running |= {name: self.start(name) for name in ("retry", "optimize")}
        result = {name: self.answer(process) for name, process in running.items()}
        for model in MODELS:
            if result[model]:
                self.sizes(model, result[model])
        if result["retry"]:
            self.retry(result["retry"])
        for model, told in (result["optimize"] or {}).items():
            self.optimize(model, told)
        return result
