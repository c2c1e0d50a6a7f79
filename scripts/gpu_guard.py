"""StepGuard on real GPUs, for scripts/gpu_check.py: its cost, jobs with rare long batches, equal parameters, two ranks with NCCL."""

import json
import os
import subprocess
import sys

SECONDS = 400  # of one program
MOST_MICROSECONDS = 100  # of a step, beside the all-reduce
# Parameters have double precision; split steps sum in another order.
ROUNDING = 1e-9


class Guard:
    """`check` counts failures and prints lines (gpu_check.Check)."""

    def __init__(self, check, root, gpus):
        self.check, self.root, self.gpus = check, root, gpus

    def require(self, what, fine, detail):
        self.check.failures += not fine
        self.check.say(f"guard  {what}: {detail}: {'as it should be' if fine else 'WRONG'}")

    def program(self, *command, ranks=1):
        """The lines it printed; none, and a failure, if it failed."""
        launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"] if ranks > 1 else [sys.executable]
        environment = {**self.check.with_package(), "OMP_NUM_THREADS": "4"}
        environment["PYTHONPATH"] += os.pathsep + str(self.root / "python" / "tests")
        try:
            done = subprocess.run([*launcher, *map(str, command)], cwd=self.root, env=environment, text=True, timeout=SECONDS,
                                  stdout=subprocess.PIPE, check=False)
        except subprocess.TimeoutExpired:
            self.require(command[0], False, f"longer than {SECONDS} s")
            return []
        if done.returncode != 0:
            self.require(command[0], False, f"exit code {done.returncode}")
        return done.stdout.splitlines()

    def cost(self, name, ranks, *options):
        file = self.check.results / "guard.json"
        for line in self.program("bench/step_guard.py", "cost", "--json", file, *options, ranks=ranks):
            self.check.say(f"guard  {name}: {line}")
        if not file.exists():
            return None
        found = json.loads(file.read_text())
        file.unlink()
        middle = found["the guard beside it"][1]
        self.require(name, middle < MOST_MICROSECONDS, f"{middle:.1f} us a step beside it, at most {MOST_MICROSECONDS}")
        return found

    def jobs(self):
        rows = [json.loads(line) for line in self.program("bench/step_guard.py", "jobs", "--seeds", 100, "--seconds", 300)
                if line.startswith("{")]
        for row in rows:
            name = f"{row['corpus']}, {row['attention']} attention"
            lost = row["seconds_guarded"] / row["seconds_plain"] - 1
            self.require(
                name, row["failed_guarded"] == 0 and row["skipped"] == 0,
                f"{row['failed_plain']} of {row['steps']} steps out of memory without a guard, {row['failed_guarded']} with it; "
                f"{row['split']} split, {row['split_needlessly']} needlessly; cache emptied {row['emptied']} times; "
                f"{lost:+.1%} time",
            )
        self.require("jobs", len(rows) == 6 and any(row["failed_plain"] for row in rows), f"{len(rows)} of 6")
        return rows

    def parameters(self):
        """In one process: the same parameters as without a guard and without a limit."""
        lines = [line for line in self.program("python/tests/guard_trainer.py", 190, "--compare") if line.startswith('{"died"')]
        if not lines:
            return None
        told = json.loads(lines[0])
        told.pop("values")
        fine = told["died"] is not None and told["counts"]["split"] == 2 and told["difference"] < ROUNDING
        self.require("parameters", fine, f"plain: {told['died']}; guarded: {told['counts']}, difference {told['difference']:.1e}")
        return told

    def ranks(self, groups):
        lines = [line for line in self.program("python/tests/guard_two_gpus.py", "--groups", groups, "--compare", ranks=2)
                 if line.startswith('{"rank"')]
        told = [json.loads(line) for line in lines]
        same = len(told) == 2 and told[0]["decisions"] == told[1]["decisions"]
        split = sum(action == "split" for action, _, _ in told[0]["decisions"]) if told else 0
        worst = max((rank["difference"] for rank in told), default=None)
        fine = same and split == 2 and worst < ROUNDING
        self.require(f"two ranks, {groups}", fine, f"the same decisions: {same}; {split} split, difference {worst}")
        return told

    def run(self):
        found = {"cost": self.cost("one rank", 1), "jobs": self.jobs(), "parameters": self.parameters()}
        if self.gpus > 1:
            found["cost, nccl"] = self.cost("two ranks, nccl", 2, "--backend", "nccl")
            found["cost, gloo"] = self.cost("two ranks, gloo beside nccl", 2, "--backend", "cpu:gloo,cuda:nccl")
            found["ranks"] = {groups: self.ranks(groups) for groups in ("nccl", "cpu:gloo,cuda:nccl")}
        return found
