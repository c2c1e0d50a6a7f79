#!/usr/bin/env python3
"""Plants faults in hooks, recorder, signals and codecs, one at a time; prints which tests find each: none is an error.

    scripts/mutations.py RESULTS [--build build/release] [--only NAME...] [--real] [--all]

RESULTS: a folder for the output of each test, and for mutations.json: the tests and the cases in them that found each fault.
--build: a build of the release with tests, in which targets changed by a fault are built again and tests run. --real: with PyTorch
instead of tests/stand_in. --all: all tests of a fault, even after one has found it.

Sources are changed in place, and restored at the end, also after Ctrl-C.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 300
PATIENCE_S = 60  # for tests that wait for something that a fault prevents

PRELOAD = ["tidemark_preload"]
TIDEMARK = ["tidemark"]
# name: (file below src, text or texts, the same with the fault, targets to build, tests, the fastest first)
# A test is named without PyTorch's version; after a colon comes the case to run.
FAULTS = {
    "a free on the CPU is not recorded": (
        "collect/process/hooks_torch.cpp",
        "if (address != nullptr) record_free(kCpu, number(address), nullptr);",
        "(void)number;",
        PRELOAD,
        ["programs.held", "fakes_test:Torch/FakesTest.EveryEventOfEveryThreadAndDevice/0"],
    ),
    "PyTorch's own function is not called": (
        "collect/process/hooks_torch.cpp",
        "  if (next != nullptr) next(self, address, size);",
        "  (void)next;\n  (void)self;",
        PRELOAD,
        ["fakes_test:Torch/FakesTest.EveryEventOfEveryThreadAndDevice/0"],
    ),
    "sizes of one byte too much": (
        "collect/process/hooks_torch.cpp",
        "record_allocation(ring::RecordKind::allocate, kCpu, number(address), size, nullptr, native_caller_context());",
        "record_allocation(ring::RecordKind::allocate, kCpu, number(address), size + 1, nullptr, native_caller_context());",
        PRELOAD,
        ["programs.held", "programs.control:Control.test_preloaded_and_attached"],
    ),
    "empty tensors are recorded": (
        "collect/process/hooks_torch.cpp",
        "  if (size > 0) {\n    record_allocation",
        "  {\n    record_allocation",
        PRELOAD,
        ["fakes_test:Torch/FakesTest.EveryEventOfEveryThreadAndDevice/0"],
    ),
    "a failed request is not recorded": (
        "collect/process/hooks_torch.cpp",
        "  record_allocation(ring::RecordKind::out_of_memory, kCpu, 0, size, nullptr, native_caller_context());",
        "",
        PRELOAD,
        ["fakes_test:Torch/FakesTest.EveryEventOfEveryThreadAndDevice/0", "programs.same_output"],
    ),
    "a forked child goes on in its parent's memory": (
        "collect/process/session.cpp",
        (
            "if (::madvise(page, size, MADV_WIPEONFORK) != 0) {",
            "    ::pthread_atfork(nullptr, nullptr, after_fork_in_child);\n",
        ),
        ("if (false) {", "    (void)after_fork_in_child;\n"),
        PRELOAD,
        ["programs.edges:Edges.test_generations", "fakes_test:Torch/FakesTest.AForkedChildHasARecordingOfItsOwn/0"],
    ),
    "a lane stays with a thread that has ended": (
        "collect/process/session.cpp",
        "    release_lane(link.state);",
        "    (void)release_lane;",
        PRELOAD,
        ["fakes_test:Torch/FakesTest.LanesPassFromThreadToThread/0"],
    ),
    "a thread without a lane is not counted": (
        "collect/process/session.cpp",
        "  session.shared->control.thread_limit_drops.fetch_add(1, std::memory_order_relaxed);\n  return nullptr;",
        "  return nullptr;",
        PRELOAD,
        ["programs.edges:Edges.test_more_threads_than_lanes", "fakes_test:Torch/FakesTest.ThreadsBeyondTheLimitAreCounted/0"],
    ),
    "a pause does not pause": (
        "collect/process/session.cpp",
        "if (session.paused.exchange(true, std::memory_order_acq_rel)) return;",
        "if (session.paused.load(std::memory_order_acquire)) return;",
        PRELOAD,
        ["programs.control:Control.test_pause_and_resume"],
    ),
    "a recorder that is gone is not noticed": (
        "collect/process/session.cpp",
        'if (!recorder_alive()) switch_off("recording stopped: the recorder has exited; the program continues");',
        "",
        PRELOAD,
        ["programs.crash:Killed.test_recorder_killed"],
    ),
    "signals are not passed on": (
        "launch/passed_signals.cpp",
        "if (!reached && !sent_by(signal, program)) send(program, signal);",
        "(void)send;\n      (void)reached;",
        TIDEMARK,
        ["programs.signals:Signals.test_handled_by_the_program"],
    ),
    "a signal of the terminal is passed on too": (
        "launch/passed_signals.cpp",
        "if (!reached && !sent_by(signal, program)) send(program, signal);",
        "if (!sent_by(signal, program)) send(program, signal);\n      (void)reached;",
        TIDEMARK,
        ["programs.signals:Signals.test_ctrl_c_at_a_terminal"],
    ),
    "the program's signal mask stays blocked": (
        "launch/passed_signals.cpp",
        "  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);\n",
        "",
        ["child_process_test"],
        ["child_process_test"],
    ),
    "the end by a signal is an exit code": (
        "launch/child_process.cpp",
        "  ::kill(::getpid(), number);\n",
        "",
        TIDEMARK,
        ["programs.signals:Signals.test_ended_by_a_signal"],
    ),
    "events are written before earlier ones of a busy thread": (
        "collect/recorder/session/session.cpp",
        "    if (busy) round.until = std::min(round.until, lane.last_ticks);\n",
        "    (void)busy;\n",
        ["recorder_test"],
        ["recorder_test"],
    ),
    "drops are not counted": (
        "collect/recorder/session/session.cpp",
        "  add(QualityId::ring_full, dropped - std::min(dropped, dropped_while_stopped_));\n",
        "  (void)dropped;\n",
        ["tidemark", "recorder_test"],
        ["recorder_test"],
    ),
    "a process that calls exec is not ended": (
        "collect/recorder/recorder.cpp",
        "    end(client, true);\n    ended = true;",
        "    ended = true;",
        TIDEMARK,
        ["programs.processes:Processes.test_exec_finishes_the_recording_of_the_program_before"],
    ),
    "a torn frame is read": (
        "trace/frames.cpp",
        'if (whole->size() < bytes) return ends_inside("the file ends inside a frame");',
        "if (whole->size() < bytes) return false;",
        ["tidemark", "trace_unit_test"],
        ["trace_unit_test", "programs.crash:Killed.test_recorder_killed"],
    ),
    "a wrong checksum is not noticed": (
        "trace/frames.cpp",
        'if (load_le<std::uint32_t>(whole->data() + 12) != checksum) return refuse("a frame\'s checksum is wrong");',
        "(void)checksum;",
        ["trace_unit_test"],
        ["trace_unit_test"],
    ),
    "addresses without zigzag": (
        "trace/event_codec.cpp",
        "put(format::kAddress, delta_code(state_.allocated_at, address));",
        "put(format::kAddress, address - state_.allocated_at);",
        ["tidemark", "trace_unit_test"],
        ["trace_unit_test", "fakes_test:Torch/FakesTest.EveryEventOfEveryThreadAndDevice/0"],
    ),
    "the high part of a time is off by one bit": (
        "trace/event_codec.cpp",
        "put(format::kTimeHigh, time >> 8);",
        "put(format::kTimeHigh, time >> 7);",
        ["tidemark", "trace_unit_test"],
        ["trace_unit_test", "programs.control:Control.test_pause_and_resume"],
    ),
}


class Test:
    def __init__(self, described):
        self.name = described["name"]
        self.command = described["command"]
        properties = {one["name"]: one["value"] for one in described["properties"]}
        self.folder = properties.get("WORKING_DIRECTORY")
        self.variables = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
        for one in properties.get("ENVIRONMENT_MODIFICATION", []):
            name, value = one.split("=set:", 1)
            self.variables[name] = value

    def only(self, case):
        """The same test with only this case."""
        self.name += f":{case}"
        self.command = [*self.command, case if any(word.endswith(".py") for word in self.command) else f"--gtest_filter={case}"]
        return self

    def run(self, log, real):
        """None if it passes, else the failed cases, as far as the test names them."""
        variables = {**os.environ, "TIDEMARK_TEST_PATIENCE": str(PATIENCE_S), **self.variables}
        if real:
            variables.pop("TIDEMARK_STAND_IN", None)
        with log.open("wb") as file:
            process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                code = process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                code = "timeout"
            if code != 0:  # programs of the test may wait forever
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code == 0:
            return None
        said = log.read_text(errors="replace")
        found = re.findall(r"^(?:FAIL|ERROR): (\w+)|^\[  FAILED  \] ([\w./]+)", said, re.MULTILINE)
        return sorted({one or other for one, other in found}) or [str(code)]


def tests_of(build, names):
    """The tests with these names, in order: "programs.crash" is programs.crash.1.13.0, "fakes_test" all its shards."""
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, capture_output=True).stdout
    described = [one for one in json.loads(listed)["tests"] if "command" in one]
    chosen = []
    for named in names:
        name, _, case = named.partition(":")
        found = [Test(one) for one in described if re.fullmatch(rf"{re.escape(name)}(\.[\d.a-z]+)?", one["name"])]
        # Cases that are separate tests are named after their subject: run the whole program then.
        program = {"name": name, "command": [str(build / "tests" / "bin" / name), "--gtest_brief=1"], "properties": []}
        found = (
            [Test(program)] if case and not any(".py" in " ".join(test.command) for test in found) else found or [Test(program)]
        )
        chosen += [test.only(case) if case else test for test in found]
    return chosen


def build(folder, targets):
    return subprocess.run(["cmake", "--build", folder, "--target", *targets], capture_output=True, text=True, check=False)


def plant(fault, options):
    """The tests that found it, with their cases."""
    file, before, after, targets, names = FAULTS[fault]
    path = ROOT / "src" / file
    source = changed = path.read_text()
    for old, new in zip(*([text] if isinstance(text, str) else text for text in (before, after))):
        if changed.count(old) != 1:
            raise SystemExit(f"{fault}: src/{file} has changed: what to replace is not there once")
        changed = changed.replace(old, new)
    path.write_text(changed)
    try:
        built = build(options.build, targets)
        if built.returncode != 0:
            (options.results / "build.log").write_text(built.stdout)
            print(f"{fault}: does not compile: {options.results}/build.log", flush=True)
            return {}
        found = {}
        for test in tests_of(options.build, names):
            log = options.results / (re.sub(r"[^A-Za-z0-9.]+", "_", f"{fault}.{test.name}") + ".log")
            cases = test.run(log, options.real)
            if cases is not None:
                found[test.name] = cases
                if not options.all:
                    break
        return found
    finally:
        path.write_text(source)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--only", nargs="+", default=list(FAULTS))
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.results.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # exits through the code that restores the source
    results = {}
    try:
        for fault in options.only:
            began = time.monotonic()
            results[fault] = plant(fault, options)
            found = ", ".join(f"{test} ({len(cases)})" for test, cases in results[fault].items()) or "NOT FOUND"
            print(f"{fault}: {found} [{time.monotonic() - began:.0f} s]", flush=True)
            (options.results / "mutations.json").write_text(json.dumps(results, indent=1) + "\n")
    finally:
        built = build(options.build, sorted({target for fault in options.only for target in FAULTS[fault][3]}))
    missed = [fault for fault, found in results.items() if not found]
    print(f"{len(results)} faults planted, {len(missed)} of them not found by any test")
    return 1 if missed or built.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
