"""PyTorch's allocator on the phantom: Tidemark's values equal PyTorch's own, to the byte."""

import itertools
import json
import pickle
import re
import unittest

from phantom import CONTEXT, GIB, MIB, NAME, TOTAL, Case

PARTS = ("graph", "pinned", "streams", "peers", "out_of_memory", "history", "leak")
ALIVE = "active_allocated"  # of blocks in a snapshot
# PyTorch's name of an event: Tidemark's. Memory counts as allocated until the program frees it, even if a stream still uses it.
EVENTS = {"alloc": "allocate", "free_requested": "free", "oom": "out_of_memory", "segment_free": "release", "segment_unmap": "release"}
RELEASE = ("release", 0)


def size_in(message, words):
    """Bytes of "1.94 GiB" before or after these words, and half of the last digit."""
    number, unit = re.search(words.replace("SIZE", r"(\d+\.\d\d) (\wiB)"), message).groups()
    scale = {"KiB": 1 << 10, "MiB": MIB, "GiB": GIB}[unit]
    return float(number) * scale, 0.005 * scale


class Allocator(Case):
    def run_parts(self, *parts, settings="", code=1):
        """Sets both names of the variable: PyTorch before 2.9 reads only the first."""
        dumped = self.folder / "snapshot.pickle"
        names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        variables = {name: settings for name in names} | {"TIDEMARK_TEST_SNAPSHOT": str(dumped)}
        plan, result, _ = self.plan("allocator.py", *parts, code=code, **variables)
        self.assertEqual(result["name"], NAME)
        if dumped.exists():
            result["snapshot"] = pickle.loads(dumped.read_bytes())
        return plan, result

    def check_parts(self, result):
        """The parts' values do not depend on the allocator's settings."""
        self.assertEqual(result["pinned"]["sum"], result["pinned"]["expected"])
        self.assertEqual(result["streams"], {"different": True, "done": True, "timed": True})
        self.assertEqual(result["peers"]["sum"], sum(range(1000)))
        self.assertEqual(result["peers"]["total"], TOTAL)

    def json_of(self, *command):
        return json.loads(self.read(*command, "--format", "json", self.output))

    def check_counters(self, plan, result):
        """summary, plan, timeline, table, ledger and fragmentation against memory_stats() and _snapshot()."""
        events = self.events()
        for number, stats in enumerate(result["counters"]):
            name = f"cuda:{number}"
            recorded = self.device(device=name)
            segments = [segment for segment in result["snapshot"]["segments"] if segment["device"] == number]
            blocks = [block for segment in segments for block in segment["blocks"] if block["state"] == ALIVE]
            allocated, reserved = stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]
            self.assertEqual(allocated, sum(block["size"] for block in blocks))
            self.assertEqual(reserved, sum(segment["total_size"] for segment in segments))
            self.assertEqual(
                {key: recorded[key] for key in COUNTERS}, {key: stats[counter] for key, counter in COUNTERS.items()}
            )
            self.assertEqual(recorded["end_block_count"], len(blocks))
            (planned,) = [device for device in plan["devices"] if device["device"] == name]
            self.assertEqual(planned["peak_allocated_bytes"], stats["allocated_bytes.all.peak"])
            self.assertEqual(planned["peak_reserved_bytes"], stats["reserved_bytes.all.peak"])
            # The driver may take memory after the reserved peak; a failed request may have filled the device.
            most = TOTAL if stats["num_ooms"] else stats["reserved_bytes.all.peak"] + CONTEXT + planned["driver_bytes"]
            self.assertLessEqual(stats["reserved_bytes.all.peak"] + CONTEXT, planned["device_used_bytes"])
            self.assertLessEqual(planned["device_used_bytes"], most)
            self.check_ledger(name, events, CONTEXT + planned["driver_bytes"])
            (measures,) = self.json_of("fragmentation", "--device", name)["devices"]
            self.assertEqual(
                (measures["at_end"]["allocated_bytes"], measures["at_end"]["reserved_bytes"]), (allocated, reserved)
            )
        self.assertEqual(self.issue_ids(), set())

    def check_ledger(self, name, events, most_context):
        """The device's used memory is the context, with libraries, and PyTorch's reserved memory, at the time of the last sample."""
        (device,) = self.json_of("ledger", "--at", "end", "--device", name)["devices"]
        ledger = device["ledger"]
        of_device = [event for event in events if event.get("device") == name]
        before = [event for event in of_device if event["time_ns"] <= ledger["time_ns"]]
        reserved, allocated = before[-1]["total_reserved"], before[-1]["total_allocated"]
        # The driver takes and releases segments shortly before PyTorch reports them, which may be several for one request with
        # expandable segments: the sample may lie between.
        changes = [event["total_reserved"] - reserved for event in of_device[len(before) : len(before) + 4]]
        lines = {line["part"]: line["bytes"] for line in ledger["lines"]}
        self.assertEqual(lines["pytorch"], reserved)
        self.assertLessEqual(CONTEXT, lines["context"] - min([0, *changes]))
        self.assertLessEqual(lines["context"], most_context + max([0, *changes]))  # the driver may take memory after the sample
        self.assertEqual((ledger["used_bytes"], ledger["unexplained_bytes"]), (lines["context"] + reserved, 0))
        self.assertEqual((ledger["allocated_bytes"], ledger["cached_bytes"]), (allocated, reserved - allocated))

    def check_blocks(self, result):
        """Each block that is alive at the end, and each event since PyTorch records its own."""
        events = [event for event in self.events() if event.get("device") == "cuda:0"]
        alive = {}
        for event in events:
            if event["kind"] == "allocate":
                alive[int(event["address"], 16)] = event["size"]
            elif event["kind"] == "free":
                del alive[int(event["address"], 16)]
        segments = [segment for segment in result["snapshot"]["segments"] if segment["device"] == 0]
        blocks = {}
        for segment in segments:
            blocks |= {block["address"]: block["size"] for block in segment["blocks"] if block["state"] == ALIVE}
        self.assert_same(sorted(alive.items()), sorted(blocks.items()))
        traced = [entry for entry in result["snapshot"]["device_traces"][0] if entry["action"] in EVENTS]
        self.assertGreater(len(traced), 400)
        began = self.mark_times()["history"]
        since = [event for event in events if event["time_ns"] > began]
        theirs = [(EVENTS[entry["action"]], entry.get("addr", 0)) for entry in traced]
        theirs = [RELEASE if kind == "release" else (kind, address) for kind, address in theirs]
        # A range released by expandable segments is several of Tidemark's.
        self.assertIn(RELEASE, theirs)
        since = [(event["kind"], int(event.get("address", "0"), 16)) for event in since]
        ours = [event for event, run in itertools.groupby(since) for event in ([event] if event == RELEASE else run)]
        theirs = [event for event, run in itertools.groupby(theirs) for event in ([event] if event == RELEASE else run)]
        self.assert_same(ours, theirs)
        exported = self.folder / "exported.pickle"
        self.read("export", "--to", "pytorch", "-o", exported, "--device", "cuda:0", self.output)
        actions = [entry for entry in pickle.loads(exported.read_bytes())["device_traces"][0] if entry["action"] in ("alloc", "free_completed")]
        blocks = [(kind == "allocate", address) for kind, address in since if kind != "release"]
        self.assert_same([(entry["action"] == "alloc", entry["addr"]) for entry in actions][-len(blocks) :], blocks)

    def check_moments(self, moments):
        """PyTorch's counters at marks, after memory was released without a block event."""
        times = self.mark_times()
        events = self.events()
        self.assertIn(0, [moment["pinned"] for moment in moments.values()])
        for name, moment in moments.items():
            before = [event for event in events if event["time_ns"] <= times[name]]
            totals = [event for event in before if event.get("device") == "cuda:0" and "total_reserved" in event]
            pinned = sum(
                event["size"] * {"allocate": 1, "free": -1}[event["kind"]] for event in before if event.get("device") == "cuda-host"
            )
            found = {"allocated": totals[-1]["total_allocated"], "reserved": totals[-1]["total_reserved"], "pinned": pinned}
            self.assertEqual(found, moment, name)

    def assert_same(self, ours, theirs):
        """Compares long lists, whose differences unittest would take long to compute."""
        for index, (our, their) in enumerate(zip(ours, theirs)):
            self.assertEqual(our, their, index)
        self.assertEqual(len(ours), len(theirs))

    def mark_times(self):
        strings, times = {}, {}
        for kind, fields in self.dump():
            if kind == "string":
                strings[fields["id"]] = fields["text"]
            if kind == "mark":
                times[strings[fields["name"]]] = fields["time_ns"]
        return times

    def check_marks(self, result):
        for name in ("history", "held"):
            (section,) = self.json_of("table", "--at", name, "--device", "cuda:0")["sections"]
            self.assertEqual(section["allocated_bytes"], result[name], name)

    def check_leak(self, allocated):
        leaks = self.json_of("leaks", "--device", "cuda:0", "--warmup", "2")
        # In addition, the three optimizer steps of churn().
        self.assertEqual((leaks["verdict"], leaks["steps"]["count"]), ("leak", 3 + len(allocated)))
        (growth,) = {later - earlier for earlier, later in zip(allocated[2:], allocated[3:])}
        (leak,) = leaks["leaks"]
        self.assertEqual(leak["held_bytes"], growth * leak["held_block_count"])
        # The first step of the growth began before the loop, the last one is not analyzed.
        self.assertGreaterEqual(leak["held_block_count"], len(allocated) - 2)
        self.assertAlmostEqual(leaks["bytes_per_step"], growth, delta=growth / len(allocated))

    def check_explanation(self, messages):
        """The values in PyTorch's message, to its number of digits."""
        failures = {failure["request"]["bytes"]: failure for failure in self.json_of("explain", "--failures", "0")["failures"]}
        for message in messages:
            requested, _ = size_in(message, "Tried to allocate SIZE")
            failure = failures.pop(int(requested))
            # PyTorch counts free memory in private pools as allocated, until 2.11 or so.
            private, rounding = size_in(message, "with SIZE allocated in private pools") if "private pools" in message else (0, 0)
            said, half_digit = size_in(message, "SIZE is allocated by PyTorch")
            self.assertAlmostEqual(failure["allocated_bytes"], said - private, delta=half_digit + rounding)
            said, half_digit = size_in(message, "SIZE is reserved by PyTorch")
            self.assertAlmostEqual(failure["cached_bytes"], said + private, delta=half_digit + rounding)
        failures.pop(300 * MIB)  # of released_gpu.py
        return failures

    def test_default_settings(self):
        plan, result = self.run_parts(*PARTS[:5], "released", "churn", *PARTS[5:])
        self.check_moments(result["released"]["moments"])
        self.check_parts(result)
        self.check_counters(plan, result)
        self.check_blocks(result)
        self.check_marks(result)
        self.check_leak(result["leak"])
        # The private pool of the two graphs, and the usual one.
        self.assertEqual(result["graph"], {"pools": 2})
        # The driver counts the context and the segments.
        self.assertEqual(result["peers"]["used"], CONTEXT + result["counters"][1]["reserved_bytes.all.current"])
        limited, full = result["out_of_memory"]
        self.assertIn("Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 139.80 GiB", limited)
        self.assertIn("1.40 GiB allowed", limited)
        self.assertIn("Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB", full)
        self.assertIn("Including non-PyTorch memory, this process has 13", full)
        self.assertNotIn("allowed", full)
        self.assertEqual(set(self.check_explanation(result["out_of_memory"])), {2 * TOTAL, 3 * TOTAL})

    def test_expandable_segments(self):
        plan, result = self.run_parts(*PARTS[:5], "released", *PARTS[5:], settings="expandable_segments:True")
        self.check_moments(result["released"]["moments"])
        self.check_parts(result)
        self.check_counters(plan, result)
        self.check_blocks(result)
        self.assertEqual(self.check_explanation(result["out_of_memory"]), {})

    def test_asynchronous_allocator(self):
        """The driver's pool allocates memory, which PyTorch reports to no hook, so there is no plan."""
        _, result = self.run_parts(*PARTS[:5], settings="backend:cudaMallocAsync", code=2)
        self.check_parts(result)
        limited, full = result["out_of_memory"]
        self.assertIn("PyTorch limit (set by user-supplied memory fraction)", limited)
        self.assertIn("Requested               : 8.00 GiB", full)
        # Pools grow by 32 MiB.
        self.assertEqual(result["counters"][1]["reserved_bytes.all.peak"] % (32 * MIB), 0)


# For a device in `summary`: PyTorch's name.
COUNTERS = {
    "peak_allocated_bytes": "allocated_bytes.all.peak",
    "peak_reserved_bytes": "reserved_bytes.all.peak",
    "end_allocated_bytes": "allocated_bytes.all.current",
    "end_reserved_bytes": "reserved_bytes.all.current",
    "total_allocated_bytes": "allocated_bytes.all.allocated",
    "allocation_count": "allocation.all.allocated",
    "out_of_memory_count": "num_ooms",
}


if __name__ == "__main__":
    unittest.main()
