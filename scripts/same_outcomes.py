#!/usr/bin/env python3
"""Whether recording changes what programs do: a thousand programs, each plain and recorded, must end the same way.

    scripts/same_outcomes.py build/release/bin/tidemark [--python PYTHON] [--programs 1000] [--jobs 2]

A program is some work with PyTorch (training, threads, processes, generators, hooks, ...), something that interferes with it (storms of
signals whose handlers raise, audit hooks that end the process, profilers, tracers, a debugger, faulthandler, limits, ...), and a way to
end (returning, exceptions, exit codes, signals, crashes, exec, ...); number n is always the same one. They are forked once PyTorch is
loaded, every tenth starts a new interpreter. Exit status, stdout and stderr are compared, without addresses and process ids. Programs that
differ run again up to five times: an outcome that a plain run of the program had too is no difference, as a signal may hit Python itself at
a place that swallows exceptions, with and without recording.

Prints the programs that differ and ends with 1 if there are any.
"""

import argparse
import atexit
import concurrent.futures
import contextlib
import cProfile
import ctypes
import faulthandler
import gc
import itertools
import json
import os
import pathlib
import pstats
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings

ALARMS = 40
LIMIT_S = 60
PTRACE_TRACEME, PTRACE_CONT = 0, 7
VARIES = [
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"(?m)^Thread ADDRESS.*\n(?:  File .*\n|  \.\.\..*\n)*"), ""),  # any thread may run when a process crashes
    (re.compile(r"\[\d+\]|pid[ =]\d+"), "PID"),
]


# ---- the work ----


class Interrupted(BaseException):
    """BaseException, because libraries have handlers for Exception that are meant for their own errors."""


def make_model(width=16):
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))


def train(steps=3):
    import torch

    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return f"{loss.item():.6f}"


def evaluate():
    import torch

    model = torch.nn.Conv2d(1, 2, 3)
    with torch.no_grad():
        model.weight.fill_(0.5)
        model.bias.fill_(0.25)
        return f"{model(torch.ones(1, 1, 8, 8)).sum().item():.3f}"


def train_in_threads():
    results = []
    for _ in range(2):  # sequentially: the output of two of them would be mixed
        thread = threading.Thread(target=lambda: results.append(train(2)))
        thread.start()
        thread.join()
    return len(results)


def make_models():
    import torch

    return [make_model(width)(torch.ones(1, 8)).shape for width in range(4, 8)]


def use_hooks():
    import torch

    calls = []
    model = make_model()
    for layer in model:
        layer.register_forward_hook(lambda *_: calls.append(1))
    model[0].weight.register_hook(lambda gradient: calls.append(2))
    model(torch.ones(2, 8)).sum().backward()
    return calls


def define_function():
    import torch

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(3, requires_grad=True)
    Twice.apply(x).sum().backward()
    return x.grad.tolist()


def generate():
    import torch

    def batches():
        for n in range(4):
            yield torch.full((2,), float(n))

    async def collect():
        return [batch.sum().item() for batch in batches()]

    try:
        collect().send(None)  # an exception at the wrong moment would leave a loop of asyncio partly created
    except StopIteration as ended:
        return ended.value


def fork():
    import torch

    kept = torch.ones(4)
    pid = os.fork()
    if pid == 0:
        os._exit(int(torch.ones(5).sum().item() + kept.sum().item()))
    while True:
        with contextlib.suppress(InterruptedError):
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def call_programs():
    return subprocess.run([sys.executable, "-c", "print('called')"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()


def fail_inside():
    import torch

    try:
        make_model()(torch.ones(2, 9))
    except RuntimeError as error:
        return type(error).__name__
    return "no error"


WORKS = [train, evaluate, train_in_threads, make_models, use_hooks, define_function, generate, fork, call_programs, fail_inside]


# ---- interference with the work ----


def may_raise(frame):
    """Not in Python's own library: threading, subprocess and code that runs at a fork do not survive an exception at any place."""
    while frame is not None:
        if frame.f_code.co_filename != __file__ and f"{os.sep}torch{os.sep}" not in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return True


def storm(work, error):
    """Signals whose handler raises, at any instruction of the work. Each must arrive."""
    raised = caught = got = 0

    def handle(_, frame):
        nonlocal raised, got
        got += 1
        signal.setitimer(signal.ITIMER_REAL, 0.0007 * (1 + got % 3) if got < ALARMS else 0)
        if may_raise(frame):
            raised += 1
            raise error

    work()  # an interrupted import leaves incomplete modules
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    result = None
    while True:
        try:
            while got < ALARMS:
                result = work()
            break
        except (Interrupted, KeyboardInterrupt):
            caught += 1
    print("all signals arrived" if raised == caught else f"{raised - caught} were swallowed")
    return result if result is not None else work()


def counting_storm(work):
    counted = 0

    def handle(*_):
        nonlocal counted
        counted += 1

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        result = work()
        while counted < ALARMS:
            result = work()
        return result
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def with_audit_hook(work, events):
    work()  # its modules are now imported and compiled
    seen = []

    def look(event, arguments):
        if event in events:
            seen.append(event)

    sys.addaudithook(look)
    result = work()
    print("events:", len(seen))
    return result


def with_strict_audit_hook(work):
    """As a sandbox does it."""
    work()
    allowed = [False]

    def look(event, arguments):
        if event in ("compile", "exec", "ctypes.dlopen", "socket.connect") and not allowed[0]:
            os.write(2, f"not allowed: {event}\n".encode())
            os._exit(77)

    sys.addaudithook(look)
    result = work()
    allowed[0] = True
    return result


def with_profile_function(work):
    work()
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        counted += event in ("call", "return") and frame.f_code.co_filename == __file__

    sys.setprofile(count)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    print("calls:", counted)
    return result


def with_trace_function(work):
    work()
    lines = []

    def trace(frame, event, argument):
        if frame.f_code.co_filename != __file__:
            return None
        lines.append(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        result = work()
    finally:
        sys.settrace(None)
    print("lines:", len(lines))
    return result


def with_profiler(work):
    work()
    profiler = cProfile.Profile()
    result = profiler.runcall(work)
    print("functions:", len({place for place in pstats.Stats(profiler).stats if place[0] == __file__}))
    return result


def with_faulthandler(work):
    faulthandler.enable()
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    result = work()
    faulthandler.cancel_dump_traceback_later()
    return result


def with_tracemalloc(work):
    tracemalloc.start()
    result = work()
    print("traced:", tracemalloc.is_tracing())
    tracemalloc.stop()
    return result


def without_garbage(work):
    work()
    gc.collect()
    gc.disable()
    result = work()
    print("garbage:", gc.collect())
    return result


def with_errors_for_warnings(work):
    work()
    warnings.simplefilter("error")
    return work()


def with_few_files(work):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, hard))
    return work()


def at_depth(work):
    def descend(depth):
        return work() if depth == 0 else descend(depth - 1)

    def fall():
        return fall()

    result = descend(200)
    try:
        fall()
    except RecursionError:
        print("recursion ended")
    return result


def in_debugger(work):
    """The process that forked this one traces it: see wait_for()."""
    ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    return work()


INTERFERENCES = {
    "nothing": lambda work: work(),
    "signals, exceptions": lambda work: storm(work, Interrupted),
    "signals, KeyboardInterrupt": lambda work: storm(work, KeyboardInterrupt),
    "signals, counted": counting_storm,
    "audit hook": lambda work: with_audit_hook(work, ("compile", "exec", "sys._getframe", "builtins.id", "object.__getattr__")),
    "strict audit hook": with_strict_audit_hook,
    "profile function": with_profile_function,
    "trace function": with_trace_function,
    "profiler": with_profiler,
    "faulthandler": with_faulthandler,
    "tracemalloc": with_tracemalloc,
    "garbage": without_garbage,
    "warnings": with_errors_for_warnings,
    "few files": with_few_files,
    "recursion": at_depth,
    "debugger": in_debugger,
}


# ---- ways to end ----


def crash():
    faulthandler.enable()
    ctypes.string_at(0)


def leave_thread():
    threading.Thread(target=time.sleep, args=(LIMIT_S,), daemon=True).start()


def raise_at_end():
    raise ValueError("the end")


ENDINGS = {
    "returns": lambda: None,
    "exit code": lambda: sys.exit(3),
    "exception": raise_at_end,
    "at once": lambda: os._exit(5),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminated": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "aborts": os.abort,
    "crashes": crash,
    "exec": lambda: os.execv(sys.executable, [sys.executable, "-c", "print('another program')"]),
    "atexit": lambda: atexit.register(print, "at exit"),
    "daemon thread": leave_thread,
}

PROGRAMS = list(itertools.product(WORKS, INTERFERENCES, ENDINGS))
STRIDE = 577  # has no common factor with the number of programs: any number of consecutive ones are of all kinds


def program(number):
    return PROGRAMS[number * STRIDE % len(PROGRAMS)]


def describe(number):
    work, interference, ending = program(number)
    return f"{work.__name__}; {interference}; {ending}"


def run_program(number):
    work, interference, ending = program(number)
    print(INTERFERENCES[interference](work), flush=True)
    ENDINGS[ending]()


# ---- running them ----


def wait_for(pid):
    """Its wait status; a traced process continues with the signals that it gets."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found == 0:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                deadline += LIMIT_S
            time.sleep(0.001)
        elif os.WIFSTOPPED(status):
            stopped_by = os.WSTOPSIG(status)
            passed_on = 0 if stopped_by in (signal.SIGSTOP, signal.SIGTRAP) else stopped_by
            ctypes.CDLL(None).ptrace(PTRACE_CONT, pid, None, ctypes.c_void_p(passed_on))
        else:
            return os.waitstatus_to_exitcode(status)


def run_programs(numbers, folder):
    """In each of the compared processes: forks a child for each program. Children return to the end of the script."""
    import torch
    import torch.optim

    torch.set_num_threads(1)
    # A recorded process forks. It has not run a backward pass: with a GPU, its children could not run one.
    model = make_model()
    model(torch.ones(4, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for number in numbers:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            for stream, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(folder / f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            run_program(number)
            return
        (folder / f"{number}.code").write_text(str(wait_for(pid)))


def command_of(arguments, recording):
    """The plain command if `recording` is None."""
    own = [arguments.python, __file__]
    if recording is None:
        return own
    return [arguments.tidemark, "run", "--force", "--output", str(recording), "--", *own]


def normalized(text):
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return text


def outcome(code, stdout, stderr):
    return [code, normalized(stdout), normalized(stderr)]


def outcomes_of_forked(arguments, numbers, folder, recorded):
    run = folder / ("recorded" if recorded else "plain")
    run.mkdir(exist_ok=True)
    command = command_of(arguments, run / "run.tide" if recorded else None)
    done = subprocess.run([*command, "--run", *map(str, numbers), "--folder", str(run)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"programs {numbers[0]} to {numbers[-1]}: {done.returncode}\n{done.stdout}{done.stderr}")
    found = {}
    for number in numbers:
        texts = [(run / f"{number}.{name}").read_text(errors="replace") for name in ("stdout", "stderr")]
        found[number] = outcome(int((run / f"{number}.code").read_text()), *texts)
    for recording in run.glob("*.tide"):
        recording.unlink()
    return found


def outcome_of_started(arguments, number, folder, recorded):
    command = command_of(arguments, folder / f"started.{number}.tide" if recorded else None)
    done = subprocess.run([*command, "--start", str(number)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          errors="replace")
    ours = re.compile(r"(?m)^tidemark: .*\n")
    code = 128 - done.returncode if done.returncode < 0 else done.returncode  # as in a shell, so `tidemark run` does the same
    return outcome(code, done.stdout, ours.sub("", done.stderr))


def differing(arguments, numbers, folder):
    """The programs among these with different outcomes: number to [plain, recorded]."""
    found = {}
    started = [number for number in numbers if number % 10 == 9 and "debugger" not in describe(number)]
    forked = [number for number in numbers if number not in started]
    for number in started:
        pair = [outcome_of_started(arguments, number, folder, recorded) for recorded in (False, True)]
        if pair[0] != pair[1]:
            found[number] = pair
    if forked:
        plain, recorded = (outcomes_of_forked(arguments, forked, folder, recorded) for recorded in (False, True))
        found |= {number: [plain[number], recorded[number]] for number in forked if plain[number] != recorded[number]}
    return found


def compare(arguments):
    numbers = list(range(arguments.first, arguments.first + arguments.programs))
    parts = [numbers[at : at + 50] for at in range(0, len(numbers), 50)]
    differ = {}
    done = 0
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        folders = [pathlib.Path(temporary, str(number)) for number in range(len(parts))]
        for folder in folders:
            folder.mkdir()
        for part, found in zip(parts, pool.map(lambda part, folder: differing(arguments, part, folder), parts, folders)):
            differ |= found
            done += len(part)
            print(f"{done} programs, {len(differ)} differ", file=sys.stderr)
        plain_outcomes = {number: [plain] for number, (plain, _) in differ.items()}
        for attempt in range(5):
            again = [pathlib.Path(temporary, f"again-{attempt}-{number}") for number in differ]
            for folder in again:
                folder.mkdir()
            found = pool.map(lambda number, folder: differing(arguments, [number], folder), differ, again)
            pairs = {number: pair for pairs in list(found) for number, pair in pairs.items()}
            for number, (plain, _) in pairs.items():
                plain_outcomes[number].append(plain)
            differ = {number: pair for number, pair in pairs.items() if pair[1] not in plain_outcomes[number]}
            print(f"{len(differ)} differ when they are run again", file=sys.stderr)
    for number, (plain, recorded) in differ.items():
        print(f"program {number}: {describe(number)}\n  plain:    {json.dumps(plain)}\n  recorded: {json.dumps(recorded)}")
    print(f"{len(numbers)} programs, {len(differ)} with another outcome when they are recorded")
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidemark", nargs="?", default="build/release/bin/tidemark")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the programs; it has PyTorch")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--run", type=int, nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run is not None:
        run_programs(arguments.run, arguments.folder)
    elif arguments.start is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        run_program(arguments.start)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # after the parent has used a GPU, no forked child could
        sys.exit(compare(arguments))


if __name__ == "__main__":
    main()
