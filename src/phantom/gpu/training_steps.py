# Counts the training steps of a planned program, and ends it with its last one. Runs inside the program, with its GIL, on a
# thread of its own: training_steps.cpp starts it. Only after_step() runs on the program's threads: exceptions in it come from
# the program's signal handlers, and are not caught.
from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import time
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

# As long as PyTorch itself waits for its backward threads.
SECONDS_TO_END = 10

# An optimizer without a step for this many training steps is ignored, and not waited for.
PATIENCE = 16

# Kinds of marks.
MOMENT, RANGE_BEGIN, RANGE_END = 0, 1, 2


def parameters_of(optimizer: Any) -> list[Any]:
    """Empty if an object of a program's own class is not set up yet. Runs none of its code, and catches nothing."""
    groups = object.__getattribute__(optimizer, "__dict__").get("param_groups")
    if not isinstance(groups, list):
        return []
    return [parameter for group in groups if isinstance(group, dict) for parameter in group.get("params", ())]


class TrainingSteps:
    """Counts training steps from calls of Optimizer.step(), or without an optimizer, from the program's marks.

    A training step is complete when every active optimizer has made its own step: both networks' in a GAN, all of them with
    optimizers in backward hooks. If one steps more often than another, its steps count, and the last training step is
    complete when the other has followed.
    """

    def __init__(self, optimizer_class: type, limit: int) -> None:
        self.optimizer_class = optimizer_class
        self.limit = limit  # 0: no limit
        self.count = 0  # completed training steps
        self.idle = 0  # optimizers that have parameters of their own on a GPU, and made no step
        self.under_way: set[int] = set()  # optimizers that have stepped in the current training step, by id()
        # Optimizer -> completed training steps at its latest step.
        self.latest: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers found by the latest search
        self.asked = 0  # steps after which idle ones were counted
        self.by_marks = False  # the program's marks determine the steps
        self.begun = False  # a moment that begins a step was marked
        self.listener: object = None  # keeps the C function alive that is called for marks

    def stepped(self, optimizer: Any) -> bool:
        """Whether the call completes a training step."""
        if self.by_marks:  # the marks were of something else, such as an evaluation before the training
            self.by_marks, self.count = False, 0
        if id(optimizer) in self.under_way:  # again: the previous training step was without the others
            self.complete()
        self.under_way.add(id(optimizer))
        self.latest[optimizer] = self.count
        for other, at in self.latest.items():
            if id(other) not in self.under_way and self.count - at < PATIENCE:
                return False
        if self.count < self.limit + PATIENCE:
            # A search walks all objects of the program, so it becomes less frequent; before the last step it is always made.
            self.asked += 1
            self.idle = self.count_idle(search=self.asked & (self.asked - 1) == 0 or self.count + 1 == self.limit)
            if self.idle:
                return False
        self.complete()
        return True

    def marked(self, kind: int) -> bool:
        """Whether a mark of the program that names a step completes one: the end of a range, or the moment at which the next
        begins.

        Optimizers are more reliable: an evaluation may mark its steps too.
        """
        if self.latest or (self.count < PATIENCE and self.count_idle(search=True)):
            return False
        completes = kind == RANGE_END or (kind == MOMENT and self.begun)
        self.begun = kind == MOMENT
        if completes:
            self.by_marks = True
            self.count += 1
        return completes

    def end(self) -> bool:
        """Whether the program's end completes a step."""
        return self.begun and self.marked(MOMENT)

    def complete(self) -> None:
        self.count += 1
        self.under_way.clear()

    def count_idle(self, search: bool) -> int:
        if search:
            self.seen.update(thing for thing in gc.get_objects() if issubclass(type(thing), self.optimizer_class))
        used = {id(parameter) for optimizer in self.latest for parameter in parameters_of(optimizer)}
        return sum(
            any(getattr(parameter, "is_cuda", False) for parameter in parameters_of(optimizer))
            and not any(id(parameter) in used for parameter in parameters_of(optimizer))
            for optimizer in self.seen
            if optimizer not in self.latest
        )

    def is_last(self) -> bool:
        return 0 < self.limit <= self.count


def is_inside_another(frame: FrameType | None) -> bool:
    """Whether the step() whose hook's caller is `frame` was called by the step() of another optimizer, which wraps it."""
    code = frame.f_code if frame else None
    while frame := frame and frame.f_back:
        if frame.f_code is code:
            return True
    return False


def has_backward_threads() -> bool:
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                if name.read().startswith("pt_autograd_"):
                    return True
        except OSError:  # it has just ended
            pass
    return False


def end_backward_threads() -> None:
    """Ends PyTorch's backward threads before the interpreter ends.

    They release Python objects after backward() has returned. If nothing waits for a GPU, that may be while the interpreter
    ends, which ends threads that request the GIL, inside C++: that aborts the program. Functions that the program registered
    with atexit before it used the GPU run later, and cannot make a backward pass.
    """
    if not has_backward_threads():
        return
    torch: Any = sys.modules["torch"]
    folder = os.path.dirname(torch.__file__)
    library = ctypes.CDLL(os.path.join(folder, "lib", "libtorch_cpu.so"))  # calls release the GIL
    find_engine = getattr(library, "_ZN5torch8autograd6Engine18get_default_engineEv", None)
    stop_engine = getattr(library, "_ZN5torch8autograd6Engine4stopEv", None)
    if find_engine is None or stop_engine is None:
        return
    find_engine.restype = ctypes.c_void_p
    stop_engine(ctypes.c_void_p(find_engine()))
    # Each needs the GIL once more after it was waited for.
    give_up = time.monotonic() + SECONDS_TO_END
    while has_backward_threads() and time.monotonic() < give_up:
        time.sleep(0.001)


def start(limit: int, count_at: int, stop_at: int, again_at: int, listen_at: int, end_at: int) -> None:
    """Registers the hook of optimizers, and ends the program after `limit` training steps (0: never).

    The arguments are addresses of C functions: count(steps, idle, by marks), stop(), again(), if PyTorch is not loaded yet,
    listen(function), which sets the function that is called for marks, and end(), for the interpreter's end.
    """
    optim: Any = sys.modules.get("torch.optim.optimizer")
    register = getattr(optim, "register_optimizer_step_post_hook", None)
    if register is None:
        ctypes.PYFUNCTYPE(None)(again_at)()
        return
    count = ctypes.PYFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int)(count_at)  # these keep the GIL
    stop = ctypes.PYFUNCTYPE(None)(stop_at)
    listener = ctypes.CFUNCTYPE(None, ctypes.c_int)
    listen = ctypes.PYFUNCTYPE(None, listener)(listen_at)
    steps = TrainingSteps(optim.Optimizer, limit)

    def counted(complete: bool) -> None:
        count(steps.count, steps.idle, steps.by_marks)
        if complete and steps.is_last():
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:  # closed, or None
                    pass
            stop()

    def after_step(optimizer: Any, *_: object) -> None:
        if not is_inside_another(sys._getframe(1)):
            counted(steps.stepped(optimizer))

    def at_exit() -> None:
        ctypes.PYFUNCTYPE(None)(end_at)()
        listen(listener())
        if steps.end():
            count(steps.count, steps.idle, steps.by_marks)
        end_backward_threads()

    atexit.register(at_exit)
    after_step._torchdynamo_disable = True  # type: ignore[attr-defined]  # if step() is compiled
    count(0, 0, False)
    register(after_step)
    steps.listener = listener(lambda kind: counted(steps.marked(kind)))
    listen(steps.listener)
