"""Difficult programs for a recorder in their address space. The first argument selects one."""

import os
import signal
import sys
import threading
import time
import warnings

import torch

torch.set_num_threads(1)
warnings.simplefilter("ignore")  # newer Pythons warn about fork with threads


def allocate(first, count):
    return [torch.empty(first + n, dtype=torch.uint8) for n in range(count)]


def closed_descriptors():
    """Closes every descriptor before the first event, as daemons do, and opens files under the same numbers."""
    os.closerange(3, 1024)
    files = [os.open("/dev/null", os.O_WRONLY) for _ in range(8)]
    kept = allocate(1000, 10)
    print(files, [os.readlink(f"/proc/self/fd/{file}") for file in files], len(kept))


def cleared_environment():
    """The environment is cleared before the first event, and before a forked child's."""
    os.environ.clear()
    kept = allocate(1000, 10)
    if os.fork() == 0:
        allocate(2000, 10)
        os._exit(0)
    print(os.wait()[1], len(kept), dict(os.environ))


def fork_while_others_allocate():
    # Before the others: a child forked during PyTorch's first call waits forever for its initialization.
    allocate(1000, 1)
    stop = False

    def churn():
        while not stop:
            allocate(1000, 100)

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    for child in range(10):
        pid = os.fork()
        if pid == 0:
            allocate(100_000 * (child + 1), 50)
            os._exit(child)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stop = True
    for thread in threads:
        thread.join()
    print(codes)


def generations():
    """Each forks the next and waits for it. The last allocates nothing, and only frees inherited blocks."""
    for generation in range(6):
        kept = allocate(1000 * (generation + 1), 5)
        pid = os.fork()
        if pid != 0:
            os.waitpid(pid, 0)
            os.write(1, b"generation %d: %d\n" % (generation, len(kept)))
            os._exit(0)


def many_threads():
    """More threads at once than there are lanes."""
    everybody = threading.Barrier(600)
    kept = []

    def work(number):
        kept.append(torch.empty(1000 + number, dtype=torch.uint8))
        everybody.wait()

    threading.stack_size(256 << 10)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(600)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(tensor.numel() for tensor in kept), flush=True)
    os._exit(0)


def left_threads():
    """The program exits in the middle of other threads' allocations."""

    def churn():
        while True:
            allocate(1000, 10)

    for _ in range(4):
        threading.Thread(target=churn, daemon=True).start()
    kept = allocate(5000, 1000)
    print(len(kept), flush=True)
    os._exit(0)


def outlives():
    """A child that outlives the program: it continues when the file in the second argument exists.

    It gives up if its own file is gone.
    """
    kept = allocate(1000, 10)
    if os.fork() == 0:
        os.setsid()
        kept = allocate(2000, 10)
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        with open(sys.argv[2] + ".new", "x") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[2] + ".new", sys.argv[2] + ".pid")
        while not os.path.exists(sys.argv[2]):
            if not os.path.exists(sys.argv[2] + ".pid"):
                os._exit(1)
            time.sleep(0.002)
        kept += allocate(3000, 10)
        with open(sys.argv[2], "w") as file:
            file.write(f"{len(kept)}\n")
        os._exit(0)
    while not os.path.exists(sys.argv[2] + ".pid"):
        time.sleep(0.002)
    print(len(kept))


def multiprocessing_methods():
    import multiprocessing

    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, sum(pool.map(total, range(4))))


def total(number):
    return torch.full((1000,), number).sum().item()


def interrupted():
    """Signals that interrupt allocations; Python only notes them: children end meanwhile."""
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        kept = allocate(1000, 1000)
        os.waitpid(pid, 0)
    print(len(kept))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
