"""Makes the next items on a thread while the current one is used."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_STOP_S = 5.0

_running: weakref.WeakSet[ReadAhead] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Called before the interpreter ends: it would end the thread in the middle of PyTorch's code, which aborts then."""
    until = time.monotonic() + _STOP_S
    running = list(_running)
    for ahead in running:
        ahead.stop(0)
    for ahead in running:
        ahead.stop(until - time.monotonic())


class ReadAhead:
    """Items of ``make``, at most ``ahead`` of them made before they are requested, in order.

    ``make()`` is called on a separate thread until it raises ``StopIteration``; another exception is raised by ``next()`` at
    its place, with its traceback, and ends the items. ``next()`` is for one thread; ``stop()`` for any. ``room()`` is called
    before each ``make()``, and may wait until there is room for another item elsewhere.
    """

    def __init__(self, make: Callable[[], Any], ahead: int, room: Callable[[], None] | None = None) -> None:
        self._make: Callable[[], Any] | None = make
        self._room = room
        self._ahead = ahead
        self._changed = threading.Condition()
        self._items: deque[Any] = deque()
        self._problem: BaseException | None = None
        self._ended = False
        self._stopped = False
        self._process = os.getpid()
        self.items = 0  #: handed out
        self.waited_s = 0.0  #: in next(), while the thread was not waiting
        self.making_s = 0.0  #: by the thread
        self.held_up_s = 0.0  #: by the thread, while enough items were ready or there was no room
        self._without_room_s = 0.0
        self._without_room_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="tidemark-prefetch", daemon=True)
        self._thread.start()
        _running.add(self)

    def next(self) -> Any:
        """The next item. Raises ``StopIteration`` after the last one."""
        if self._process != os.getpid():
            raise RuntimeError("a batch was asked for in a forked process: make the PrefetchLoader's iterator there")
        began = time.perf_counter()
        with self._changed:
            without_room = self._without_room(began)
            while not self._items and not self._ended and not self._stopped:
                self._changed.wait()
            now = time.perf_counter()
            self.waited_s += max(0.0, now - began - (self._without_room(now) - without_room))
            if self._items and not self._stopped:
                self.items += 1
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            problem, self._problem = self._problem, None
        try:
            raise problem or StopIteration
        finally:
            problem = None  # it refers to this frame in its traceback: its objects should not wait for the collector

    def stop(self, wait_s: float = _STOP_S) -> None:
        """End the thread, and drop its items. Waits for the thread, unless ``make`` takes longer than some seconds."""
        if self._process != os.getpid():
            return  # the thread does not exist here, and may have held the lock when the process was forked
        with self._changed:
            self._stopped = True
            self._items.clear()
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(max(0.0, wait_s))

    def _run(self) -> None:
        make, room = self._make, self._room
        self._make = self._room = None  # their objects are dropped with the thread
        assert make is not None
        problem: BaseException | None = None
        try:
            while self._wait_for_room():
                if room is not None:
                    self._wait_for(room)
                began = time.perf_counter()
                item = make()
                self.making_s += time.perf_counter() - began
                with self._changed:
                    if not self._stopped:
                        self._items.append(item)
                    self._changed.notify_all()
                del item
        except StopIteration:
            pass
        except BaseException as error:
            problem = error
        with self._changed:
            self._problem, problem = problem, None
            self._ended = True
            self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        began = time.perf_counter()
        with self._changed:
            while len(self._items) >= self._ahead and not self._stopped:
                self._changed.wait()
            self.held_up_s += time.perf_counter() - began
            return not self._stopped

    def _wait_for(self, room: Callable[[], None]) -> None:
        with self._changed:
            self._without_room_since = time.perf_counter()
        try:
            room()
        finally:
            with self._changed:
                self._without_room_s += (waited := time.perf_counter() - self._without_room_since)
                self._without_room_since = None
                self.held_up_s += waited

    def _without_room(self, now: float) -> float:
        """Seconds until now in which the thread waited for room."""
        running = 0.0 if self._without_room_since is None else max(0.0, now - self._without_room_since)
        return self._without_room_s + running


def iterate(ahead: ReadAhead, hand_over: Callable[[Any], Any]) -> Iterator[Any]:
    """Yields ``hand_over(item)`` for each item; the thread ends with the iteration, however that ends."""
    try:
        while True:
            try:
                ready = [ahead.next()]
            except StopIteration:
                return
            yield hand_over(ready.pop())  # no name here keeps the item alive
    finally:
        ahead.stop()
