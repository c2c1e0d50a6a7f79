"""Makes the next items on a thread while the current one is used."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_STOP_S = 5.0


class ReadAhead:
    """Items of ``make``, at most ``ahead`` of them made before they are asked for, in order.

    ``make()`` is called on a thread of its own until it raises ``StopIteration``; another exception is raised by ``next()``
    at its place, with its traceback, and ends the items. ``next()`` is for one thread; ``stop()`` for any.
    """

    def __init__(self, make: Callable[[], Any], ahead: int) -> None:
        self._make: Callable[[], Any] | None = make
        self._ahead = ahead
        self._changed = threading.Condition()
        self._items: deque[Any] = deque()
        self._problem: BaseException | None = None
        self._ended = False
        self._stopped = False
        self._process = os.getpid()
        self.items = 0  #: handed out
        self.waited_s = 0.0  #: by next()
        self.making_s = 0.0  #: by the thread
        self.held_up_s = 0.0  #: by the thread, while enough items were ready
        self._thread = threading.Thread(target=self._run, name="tidemark-prefetch", daemon=True)
        self._thread.start()

    def next(self) -> Any:
        """The next item. Raises ``StopIteration`` after the last one."""
        if self._process != os.getpid():
            raise RuntimeError("a batch was asked for in a forked process: make the PrefetchLoader's iterator there")
        began = time.perf_counter()
        with self._changed:
            while not self._items and not self._ended and not self._stopped:
                self._changed.wait()
            self.waited_s += time.perf_counter() - began
            if self._items and not self._stopped:
                self.items += 1
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        raise StopIteration

    def stop(self) -> None:
        """End the thread, and drop what it has made. It is waited for, unless ``make`` takes longer than some seconds."""
        with self._changed:
            self._stopped = True
            self._items.clear()
            self._changed.notify_all()
        if self._process == os.getpid() and threading.current_thread() is not self._thread:
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        make = self._make
        self._make = None  # what it holds is dropped with the thread
        assert make is not None
        problem: BaseException | None = None
        try:
            while self._wait_for_room():
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
            self._problem = problem
            self._ended = True
            self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        began = time.perf_counter()
        with self._changed:
            while len(self._items) >= self._ahead and not self._stopped:
                self._changed.wait()
            self.held_up_s += time.perf_counter() - began
            return not self._stopped


def iterate(ahead: ReadAhead, hand_over: Callable[[Any], Any]) -> Iterator[Any]:
    """``hand_over(item)`` of each item; the thread ends when the iteration does, however it does."""
    try:
        while True:
            try:
                item = ahead.next()
            except StopIteration:
                return
            yield hand_over(item)
    finally:
        ahead.stop()
