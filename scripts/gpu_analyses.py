"""Memory by owner, and the savings promised by advice, on real GPUs, compared with PyTorch's counters; for scripts/gpu_check.py."""

import json
import sys

CASES = ["lora", "llama", "checkpointed", "resnet"]
CASES_OF_TWO = ["ddp", "fsdp2"]  # GPUs


class Analyses:
    """`check` counts failures and prints lines (gpu_check.Check)."""

    def __init__(self, check, gpus):
        self.check, self.gpus = check, gpus

    def record(self, folder, *program):
        """The JSON in the program's last line. Recordings of its processes are in the folder then."""
        folder.mkdir(exist_ok=True)
        run = ["run", "-q", "-f", "-o", folder / "run.tide", "--", sys.executable, *program]
        return json.loads(self.check.output(self.check.tidemark, *run).splitlines()[-1])

    def read(self, command, *arguments):
        return json.loads(self.check.output(self.check.tidemark, command, "--format", "json", *arguments))


class Categories(Analyses):
    """Memory by owner, compared with the program's own tensors at three moments: as tests/integration/phantom/test_categories.py."""

    def breakdown(self, file, device, at):
        return self.read("breakdown", "--top", "0", "--device", device, "--at", at, file)["devices"][0]

    def case(self, case):
        folder = self.check.results / "categories"
        ranks = self.record(folder, "tests/integration/phantom/attributed.py", case)[case]
        result = {}
        for file in sorted(folder.iterdir()):
            devices = self.read("summary", file)["devices"]
            for rank in ranks:
                device = f"cuda:{rank['rank']}"
                if device not in (part["device"] for part in devices):
                    continue
                peak = self.breakdown(file, device, "peak")
                held = {part["category"]: part["bytes"] for part in peak["categories"]}
                result[device] = {"peak_bytes": peak["allocated_bytes"], "categories": held}
                shares = ", ".join(f"{name} {size / peak['allocated_bytes']:.1%}" for name, size in held.items())
                self.check.say(f"categories  {case} {device}: {peak['allocated_bytes']:,} at the peak: {shares}")
                self.check.failures += held.get("unknown", 0) > 0.02 * peak["allocated_bytes"]
                # After the forward pass FSDP's outermost unit still has its gathered parameters, which are copies.
                for mark in ("forward done", "backward done", "step done")[case == "fsdp2" :]:
                    found = self.breakdown(file, device, mark)
                    ours = {part["category"]: part["tensor_bytes"] for part in found["categories"]}
                    names = "parameter", "buffer", "gradient", "optimizer_state"
                    said = rank[mark]
                    same = all(ours.get(name, 0) == said[name] for name in names)
                    same = same and found["allocated_bytes"] == said["allocated"]
                    verdict = "equal" if same else f"DIFFERENT: {ours} {said}"
                    self.check.say(f"categories  {case} {device}, {mark}: {verdict}")
                    self.check.failures += not same
            file.unlink()
        return result

    def run(self):
        return {case: self.case(case) for case in CASES + (CASES_OF_TWO if self.gpus > 1 else [])}


class Advice(Analyses):
    """The savings promised by each piece, compared with PyTorch's counters without the fault: as tests/integration/phantom/test_advice.py."""

    def promised(self, kind, file):
        found = [device for device in self.read("patterns", file)["devices"] if device["device"].startswith("cuda")]
        advice = [one for device in found for one in device["advice"] if one["kind"] == kind]
        return advice[0]["avoidable_peak_bytes"] if advice else None

    def run(self):
        if self.gpus < 2:
            self.check.say("advice  needs two GPUs: not checked")
            return None
        folder = self.check.results / "advice"
        told = self.record(folder, "tests/integration/phantom/faults.py", "all")
        runs = {(run["case"], run["fixed"]): run for run in told}
        rows = self.read("summary", *sorted(folder.iterdir()))["ranks"]["rows"]
        files = {row["pid"]: row["file"] for row in rows}
        result = {}
        for kind in sorted({case for case, _ in runs} - {"out_of_memory"}):
            faulty, fixed = runs[kind, False], runs[kind, True]
            saved = faulty["peak"] - fixed["peak"]
            promised, rest = (self.promised(kind, files[run["pid"]]) for run in (faulty, fixed))
            result[kind] = {"promised": promised, "saved": saved, "promised_without_fault": rest}
            promised, rest = promised or 0, rest or 0
            # With two ranks: when blocks of other streams are free again depends on the GPUs' timing.
            fine = rest <= 0.05 * promised and (abs(promised - saved) <= 0.01 * saved or kind == "gradient_buckets")
            self.check.failures += not fine
            self.check.say(f"advice  {kind:24} promised {promised:,}, saved {saved:,}, promised without the fault {rest:,}"
                           f"{'' if fine else '  DIFFERENT'}")  # fmt: skip
        for file in folder.iterdir():
            file.unlink()
        return result
