"""The prefetching loader: values and order, errors in a data set, and its memory on a GPU."""

from __future__ import annotations

import gc
import json
import os
import pickle
import random
import signal
import threading
import time
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gpu_programs import needs_gpu, run_on_gpu
from recordings import script

import tidemark
from tidemark.loading.batches import map_tensors
from tidemark.loading.read_ahead import ReadAhead

torch = pytest.importorskip("torch")

Pair = namedtuple("Pair", "image label")


def prefetch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tidemark-prefetch"]


def wait_until(condition: Any) -> None:
    while not condition():
        time.sleep(0.01)


def test_batches_come_in_order_and_the_thread_ends() -> None:
    batches = [torch.full((3,), float(number)) for number in range(50)]
    loader = tidemark.PrefetchLoader(batches, "cpu", ahead=3)
    assert len(loader) == 50
    for _ in range(2):  # epochs
        assert [int(batch[0]) for batch in loader] == list(range(50))
    report = loader.report()
    assert (report.batches, report.pinned_bytes, report.copied_bytes) == (100, 0, 0)
    assert report.waits_for_data in (True, False)
    wait_until(lambda: not prefetch_threads())


def test_no_more_is_read_than_asked_for() -> None:
    read: list[int] = []

    def batches() -> Any:
        for number in range(100):
            read.append(number)
            yield number

    for number in tidemark.PrefetchLoader(batches(), "cpu", ahead=2):
        assert len(read) <= number + 4  # handed out, two ready, one being read


def test_an_exception_of_the_data_set_comes_in_its_place() -> None:
    def batches() -> Any:
        yield 0
        yield 1
        raise KeyError("image 17 is broken")

    seen = []
    with pytest.raises(KeyError, match="image 17") as raised:
        seen.extend(tidemark.PrefetchLoader(batches(), "cpu"))
    assert "batches" in [entry.name for entry in raised.traceback]
    wait_until(lambda: not prefetch_threads())


def test_a_loop_that_is_left_ends_the_thread() -> None:
    loader = tidemark.PrefetchLoader(range(1000), "cpu")
    for number in loader:
        if number == 3:
            break
    iter(loader)  # never started
    gc.collect()
    wait_until(lambda: not prefetch_threads())
    assert list(loader)[:2] == [0, 1]


def test_two_loops_over_one_loader() -> None:
    loader = tidemark.PrefetchLoader(range(10), "cpu")
    assert list(zip(loader, loader)) == [(number, number) for number in range(10)]


def test_a_closed_loader_says_so() -> None:
    with tidemark.PrefetchLoader(range(10), "cpu") as loader:
        iterator = iter(loader)
        assert next(iterator) == 0
    assert list(iterator) == []
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)


def test_a_forked_process_is_told() -> None:
    iterator = iter(tidemark.PrefetchLoader(range(10), "cpu"))
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_forked_process_drops_an_iteration_whose_thread_has_the_lock() -> None:
    iterator = iter(tidemark.PrefetchLoader(range(5), "cpu"))
    next(iterator)
    (ahead,) = iterator.gi_frame.f_locals["self"]._iterations
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ahead._changed.acquire).result()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            iterator.close()
            os._exit(3)
        pool.submit(ahead._changed.release).result()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert next(iterator) == 1


class Marked:
    """An object whose destruction can be observed."""


def test_nothing_waits_for_the_collector() -> None:
    """Objects that the loop drops, or a failed data set held, are freed at once, as without the loader."""
    alive: list[weakref.ref[Marked]] = []

    def batches() -> Any:
        for number in range(3):
            if number == 2:
                held = Marked()
                alive.append(weakref.ref(held))
                raise ValueError("of the data set")
            batch = Marked()
            alive.append(weakref.ref(batch))
            yield batch
            del batch

    gc.disable()
    try:
        iterator = iter(tidemark.PrefetchLoader(batches(), "cpu", ahead=1))
        next(iterator)
        wait_until(lambda: alive[0]() is None)
        with pytest.raises(ValueError, match="of the data set"):
            for batch in iterator:
                del batch
        wait_until(lambda: not any(ref() for ref in alive))
    finally:
        gc.enable()


def test_a_loader_for_another_process() -> None:
    loader = tidemark.PrefetchLoader([1, 2, 3], "cpu", ahead=1)
    iterator = iter(loader)
    assert next(iterator) == 1
    copied = pickle.loads(pickle.dumps(loader))
    assert (list(copied), copied.report().batches, loader.report().batches) == ([1, 2, 3], 3, 1)


def test_a_program_ends_as_it_does_without_the_loader() -> None:
    """The thread is inside PyTorch, which aborts if the interpreter ends the thread."""
    program = """
import os, sys, torch, tidemark
torch.set_num_threads(1)
def batches():
    numbers = torch.randn(200, 200)
    while True:
        yield [numbers @ numbers for _ in range(50)]
for end in ("raise ValueError", "sys.exit(5)", "pass"):
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    sys.exit()
iterator = iter(tidemark.PrefetchLoader(batches(), "cpu"))
next(iterator)
exec(end)
"""
    done = script(program)
    assert (done.returncode, done.stdout) == (0, "1\n5\n0\n"), done.stderr


def test_nested_batches_keep_their_types() -> None:
    batch = {"pair": Pair(torch.ones(2), [torch.zeros(1), "name"]), "number": 3, "all": (torch.ones(1), None)}
    doubled = map_tensors(batch, lambda tensor: tensor + 1, torch.Tensor)
    assert isinstance(doubled["pair"], Pair)
    assert doubled["pair"].image.tolist() == [2, 2]
    assert doubled["pair"].label[1] == "name"
    assert doubled["all"][0].tolist() == [2]
    assert (doubled["number"], doubled["all"][1]) == (3, None)


def test_dtypes_are_converted_on_the_cpu_too() -> None:
    loader = tidemark.PrefetchLoader([(torch.ones(2), torch.arange(2))], "cpu", dtype=torch.bfloat16)
    ((image, label),) = loader
    assert (image.dtype, label.dtype) == (torch.bfloat16, torch.int64)
    loader = tidemark.PrefetchLoader([torch.arange(3, dtype=torch.uint8)], "cpu", dtype={torch.uint8: torch.float32})
    assert next(iter(loader)).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("wrong", [{"ahead": 0}, {"copy_threads": 0}, {"pinned_mb": 0}, {"device": "meta"}])
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        tidemark.PrefetchLoader([], **wrong)


def test_what_the_loader_has_can_be_asked() -> None:
    loader = tidemark.PrefetchLoader(torch.utils.data.DataLoader(list(range(8)), batch_size=4), "cpu")
    assert (loader.batch_size, len(loader.dataset), len(loader)) == (4, 8, 2)
    with pytest.raises(AttributeError):
        _ = loader.nothing_of_the_kind


def test_read_ahead_measures_who_waits() -> None:
    slow = ReadAhead(iter([1, 2, 3]).__next__, 1)
    wait_until(lambda: len(slow._items) == 1)
    assert [slow.next(), slow.next(), slow.next()] == [1, 2, 3]
    with pytest.raises(StopIteration):
        slow.next()
    assert slow.items == 3


def test_read_ahead_waits_for_room_which_is_no_wait_for_data() -> None:
    rooms = threading.Semaphore(2)
    made: list[int] = []
    ahead = ReadAhead(lambda: made.append(len(made)) or len(made), 8, lambda: rooms.acquire() and None)
    wait_until(lambda: ahead._without_room_since is not None and len(made) == 2)
    assert [ahead.next(), ahead.next()] == [1, 2]
    threading.Timer(0.2, rooms.release).start()
    assert ahead.next() == 3
    assert ahead.held_up_s >= 0.2
    assert ahead.waited_s < ahead.held_up_s
    rooms.release(10)
    ahead.stop()


class Slow(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.001)
        return torch.full((256,), float(index)), index


def test_settings_come_from_measurements() -> None:
    state = torch.random.get_rng_state()
    chosen = tidemark.OptimizedDataLoader(Slow(), batch_size=8, num_workers=2, shuffle=True)
    settings = chosen.settings
    assert torch.equal(state, torch.random.get_rng_state()), "measuring takes no random numbers of the training"
    assert settings.measured_batches >= 1
    assert settings.batch_seconds is not None
    assert settings.batch_seconds >= 0.008
    assert settings.batch_bytes == 8 * (256 * 4 + 8)
    assert settings.num_workers == min(2, len(os.sched_getaffinity(0)))
    fast = tidemark.OptimizedDataLoader([torch.zeros(1)] * 8, batch_size=1, num_workers=4).settings
    assert fast.num_workers == 0
    assert "faster than a worker" in fast.reason


def test_measuring_draws_no_random_number_of_the_program() -> None:
    numpy = pytest.importorskip("numpy")

    class Drawing(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 32

        def __getitem__(self, index: int) -> Any:
            return torch.rand(2) + random.random() + numpy.random.rand()

    generator = torch.Generator()
    drawn = []
    for measures in (False, True):
        random.seed(1)
        numpy.random.seed(1)
        torch.manual_seed(1)
        generator.manual_seed(1)
        if measures:
            assert tidemark.OptimizedDataLoader(Drawing(), 4, shuffle=True, generator=generator).settings.measured_batches == 4
            sampler = torch.utils.data.RandomSampler(Drawing(), generator=generator)
            assert tidemark.OptimizedDataLoader(Drawing(), 4, sampler=sampler).settings.measured_batches == 4
        drawn.append((random.random(), numpy.random.rand(), torch.rand(1).item(), generator.get_state().tolist()))
    assert drawn[0] == drawn[1]


def test_a_loader_with_workers_gives_every_sample() -> None:
    loader = tidemark.OptimizedDataLoader(Slow(), batch_size=8, num_workers=1).get_prefetch_loader("cpu")
    labels = [int(label) for _, batch in loader for label in batch]
    assert labels == list(range(64))


ON_GPU = """
import json
import torch
import tidemark
from tidemark.compat import PrefetchLoader

def batch(number):
    image = torch.arange(24, dtype=torch.float32).reshape(1, 2, 3, 4) + number
    return {"image": image.to(memory_format=torch.channels_last), "label": torch.tensor([number]),
            "wide": torch.zeros(number, 3_000_000),
            "gaps": torch.arange(10.0)[::2], "empty": torch.zeros(0)}

loader = PrefetchLoader([batch(number) for number in range(6)], dtype=torch.float16, pinned_mb=1)
shapes, devices, dtypes, strides = [], set(), set(), set()
for number, got in enumerate(loader):
    shapes.append(list(got["wide"].shape))
    devices |= {str(tensor.device) for tensor in got.values()}
    dtypes.add((str(got["image"].dtype), str(got["label"].dtype)))
    strides.add((got["image"].stride(), got["gaps"].shape))
report = loader.report()
del got
loader.close()
pinned = torch.empty(1000).pin_memory()
(again,) = PrefetchLoader([pinned])
print(json.dumps({
    "shapes": shapes, "devices": sorted(devices), "dtypes": sorted(dtypes),
    "strides": [[list(part) for part in pair] for pair in strides],
    "copied": report.copied_bytes, "pinned": report.pinned_bytes, "batches": report.batches,
    "most": torch.cuda.max_memory_allocated(), "end": torch.cuda.memory_allocated(), "again": list(again.shape)}))
"""


@needs_gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    package = str(Path(tidemark.__file__).parents[1])
    printed = run_on_gpu(ON_GPU, tmp_path, path=[package]).splitlines()
    told = json.loads(next(line for line in printed if line.startswith("{")))
    assert told["shapes"] == [[number, 3_000_000] for number in range(6)]
    assert told["devices"] == ["cuda:0"]
    assert told["dtypes"] == [["torch.float16", "torch.int64"]]
    # channels_last of (1, 2, 3, 4); every second element of ten, copied without the gaps
    assert told["strides"] == [[[24, 1, 8, 2], [5]]]
    assert told["copied"] == sum(24 * 4 + 8 + number * 12_000_000 + 5 * 4 for number in range(6))
    assert (told["pinned"], told["batches"]) == (1 << 20, 6)
    assert told["end"] < 10_000, "the pinned tensor's copy only"
    # The current batch, two ahead and one in transfer, of the largest size, as float32 before and float16 after.
    assert told["most"] < 4 * 5 * 18_000_000 + (1 << 20)
    assert told["again"] == [1000]
