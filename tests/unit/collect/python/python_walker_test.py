"""Compares the walker with the interpreter's own account of its frames, in the interpreter that runs this file.

Usage: pythonX.Y python_walker_test.py PROBE_LIBRARY [unittest options]
"""

import argparse
import asyncio
import ctypes
import dataclasses
import dis
import enum
import gc
import os
import subprocess
import sys
import threading
import types
import typing
import unittest

ABSENT, SUPPORTED, UNSUPPORTED = range(3)
QUALIFIED = sys.version_info >= (3, 11)
PROBE_PATH = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.environ["TIDEMARK_PROBE"]


class Probe:
    """The probe through one kind of ctypes library: CDLL releases the GIL around a call, PyDLL keeps it."""

    def __init__(self, loader):
        library = loader(PROBE_PATH)
        library.probe_version_text.restype = ctypes.c_char_p
        library.probe_generation.restype = ctypes.c_uint64
        library.probe_last_key.restype = ctypes.c_uint64
        library.probe_watch_caller.restype = ctypes.c_size_t
        library.probe_field_name.restype = ctypes.c_char_p
        library.probe_line.argtypes = [ctypes.c_uint16, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint32]
        library.probe_line.restype = ctypes.c_uint32
        library.probe_walk_for.argtypes = [ctypes.c_double]
        self.library = library
        self.raw = library.probe_walk

    def buffers(self):
        size = 1 << 20
        return (ctypes.create_string_buffer(size), ctypes.c_size_t(size), ctypes.byref(ctypes.c_size_t()),
                ctypes.c_size_t(1000), ctypes.byref(ctypes.c_int()))


def decode(count, arguments):
    """(file, function, line) of each frame that a call of probe_walk found, innermost first."""
    if count < 0:
        raise AssertionError("the probe failed: %d" % count)
    text = ctypes.string_at(arguments[0], arguments[2]._obj.value).decode("utf-8", "surrogatepass")
    frames = [tuple(part.split("\x1f")) for part in text.split("\x1e")[:-1]]
    assert len(frames) == count
    return [(file, function, int(line)) for file, function, line in frames]


def outwards(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back


def interpreter_frames(frame):
    """The same from the interpreter's frame objects."""
    result = []
    for each in outwards(frame):
        code = each.f_code
        result.append((code.co_filename, code.co_qualname if QUALIFIED else code.co_name, each.f_lineno))
    return result


RELEASES_GIL = Probe(ctypes.CDLL)
KEEPS_GIL = Probe(ctypes.PyDLL)
LIBRARY = RELEASES_GIL.library
PROBE = RELEASES_GIL
STACK_OF_KEY = {}  # with the code objects, so that their addresses are not reused


class Stacks(unittest.TestCase):
    maxDiff = None
    probe = RELEASES_GIL

    def check(self, probe=None):
        """Compares the stacks from here outwards; returns the walker's without this method's frame."""
        probe = probe or self.probe
        arguments = probe.buffers()
        # One line: the same line number.
        count, key, expected = probe.raw(*arguments), LIBRARY.probe_last_key(), interpreter_frames(sys._getframe())
        found = decode(count, arguments)
        self.assertEqual(found, expected)
        self.assertEqual(arguments[4]._obj.value, 0)
        if key not in STACK_OF_KEY:
            STACK_OF_KEY[key] = found, [frame.f_code for frame in outwards(sys._getframe())]
        self.assertEqual(STACK_OF_KEY[key][0], found)
        return found[1:]

    def test_function(self):
        def inner():
            return self.check()

        self.assertEqual(inner()[0][0], __file__)
        self.assertIn("inner", inner()[0][1])

    def test_without_releasing_the_gil(self):
        self.check(KEEPS_GIL)

    def test_lambda_comprehension_and_default(self):
        (lambda: [self.check() for _ in range(2)])()
        {k: self.check() for k in "ab"}
        list(self.check() for _ in range(2))
        sorted([2, 1], key=lambda value: (self.check(), value)[1])

    def test_methods(self):
        class Outer:
            class Inner:
                def method(self, test):
                    return test.check()

                @classmethod
                def of_class(cls, test):
                    return test.check()

                @staticmethod
                def static(test):
                    return test.check()

                @property
                def value(self):
                    return self.test.check()

        stack = Outer.Inner().method(self)
        self.assertEqual(stack[0][1], self.id().split(".")[-2] + ".test_methods.<locals>.Outer.Inner.method"
                         if QUALIFIED else "method")
        Outer.Inner.of_class(self)
        Outer.Inner.static(self)
        Outer.Inner.test = self
        Outer.Inner().value

    def test_decorators_and_many_closures(self):
        def decorate(function):
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper

        @decorate
        @decorate
        def decorated(a, b=2, *c, d, **e):
            cells = [lambda: (a, b, c, d, e, cells)]
            return self.check(), cells

        decorated(1, d=4)

    def test_generators(self):
        def leaf():
            yield self.check()

        def delegating():
            yield from leaf()
            received = yield self.check()
            yield (received, self.check())

        generator = delegating()
        next(generator)
        next(generator)
        generator.send(1)
        generator.close()

    def test_coroutines(self):
        async def leaf():
            self.check()
            await asyncio.sleep(0)
            return self.check()

        async def produce():
            for _ in range(2):
                self.check()
                yield await leaf()

        async def main():
            async for _ in produce():
                self.check()
            await asyncio.gather(leaf(), leaf())
            return [await leaf() for _ in range(2)]

        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()

    def test_exceptions(self):
        try:
            raise ValueError
        except ValueError:
            self.check()
            try:
                raise KeyError
            except KeyError:
                self.check()
        finally:
            self.check()

        class Context:
            def __enter__(context):
                self.check()

            def __exit__(context, *error):
                self.check()
                return True

        with Context():
            raise ValueError

    def test_multi_line_call(self):
        arguments = self.probe.buffers()
        first = sys._getframe().f_lineno
        count = (
            self.probe.raw(
                *arguments,
            )
        )
        # For a call that spans lines, CPython uses the line with the function's name (3.9: of the last argument).
        line = decode(count, arguments)[0][2]
        self.assertIn(line, (first + 2, first + 3))

        def outer(value):
            return value

        outer(
            1 +
            len(self.check()) +
            2
        )

    def test_large_line_numbers_and_gaps(self):
        source = "\n" * 70000 + "def far(check):\n" + "    pass\n" * 400 + "\n" * 300 + "    return check()\nr = far(check)\n"
        scope = {"check": self.check}
        exec(compile(source, "far.py", "exec"), scope)
        self.assertEqual(scope["r"][:2], [("far.py", "far", 70702), ("far.py", "<module>", 70703)])

    def test_long_functions(self):
        body = "".join("    a%d = b + %d\n" % (i, i) for i in range(2000))
        scope = {"check": self.check}
        exec(compile("def long(check, b=1):\n" + body + "    return check()\nr = long(check)\n", "long.py", "exec"), scope)
        self.assertEqual(scope["r"][0], ("long.py", "long", 2002))

    def test_names_in_every_kind_of_text(self):
        for name in ("plain", "größe", "函数", "𝔣𝔲𝔫"):
            for file in ("plain.py", "dateiö.py", "файл.py", "😀.py", "undecodable\udcff.py"):
                scope = {"check": self.check}
                exec(compile("def %s(check):\n  return check()\nr = %s(check)\n" % (name, name), file, "exec"), scope)
                # The parser normalizes identifiers (NFKC), so the interpreter's frames are the reference, in check().
                self.assertEqual(scope["r"][0][0], file)

    def test_file_name_of_a_str_subclass(self):
        class Name(str):
            pass

        def function():
            return self.check()

        for text in ("sub.py", "sübclass.py", "子.py"):
            function.__code__ = function.__code__.replace(co_filename=Name(text))
            self.assertEqual(function()[0][0], text)

    def test_line_map(self):
        class PyCodeCache:
            linemaps = {}

        def read(entry, library=KEEPS_GIL.library):
            PyCodeCache.linemaps["/generated.py"] = entry
            out, length = ctypes.create_string_buffer(1000), ctypes.c_size_t()
            count = call["call"](lambda: library.probe_line_map, out, ctypes.c_size_t(1000), ctypes.byref(length))
            return None if count < 0 else (count, ctypes.string_at(out, length.value).decode())

        call = {}
        exec(compile("def call(function, *arguments):\n return function()(*arguments)", "/generated.py", "exec"), call)
        module = types.ModuleType("torch._inductor.codecache")
        self.assertIsNone(read([(3,), ("trace",)]))  # not imported
        sys.modules[module.__name__] = module
        self.addCleanup(sys.modules.pop, module.__name__)
        self.assertIsNone(read([(3,), ("trace",)]))  # without its class
        module.PyCodeCache = PyCodeCache
        traces = '  File "m\xf6del.py"', None, "\u20ac"
        self.assertEqual(read([(3, 70000, 1 << 20), traces]), (3, '3\x1f  File "m\xf6del.py"\x1e70000\x1f\x1e1048576\x1f\u20ac\x1e'))
        self.assertIsNone(read([(3,), ("trace",)], RELEASES_GIL.library))
        for entry in ([], [(), ()], [(3,)], [(3,), ()], [3, 4], ((3,), ("trace",)), None, "text", {}):
            self.assertIsNone(read(entry), entry)
        self.assertEqual(read([("3",), ("trace",)]), (1, "0\x1f\x1e"))
        self.assertEqual(read([(3,), (4,)]), (1, "3\x1f\x1e"))
        PyCodeCache.linemaps = None
        del PyCodeCache.linemaps
        module.PyCodeCache = 7
        out, length = ctypes.create_string_buffer(9), ctypes.c_size_t()
        arguments = out, ctypes.c_size_t(9), ctypes.byref(length)
        self.assertEqual(call["call"](lambda: KEEPS_GIL.library.probe_line_map, *arguments), -1)

    def test_deeper_than_capacity(self):
        def recurse(depth):
            if depth:
                return recurse(depth - 1)
            arguments = self.probe.buffers()
            arguments = arguments[:3] + (ctypes.c_size_t(50),) + arguments[4:]
            count, expected = self.probe.raw(*arguments), interpreter_frames(sys._getframe())
            self.assertEqual(arguments[4]._obj.value, 1)
            self.assertEqual(decode(count, arguments), expected[:50])

        recurse(600)
        self.assertEqual(self.probe.raw(*self.probe.buffers()[:3], ctypes.c_size_t(0), ctypes.byref(ctypes.c_int())), 0)

    def test_exactly_capacity(self):
        depth = len(interpreter_frames(sys._getframe()))
        entries = 0  # the interpreter's entry frames: they count, and are left out
        while True:
            arguments = self.probe.buffers()
            arguments = arguments[:3] + (ctypes.c_size_t(depth + entries),) + arguments[4:]
            count, expected = self.probe.raw(*arguments), interpreter_frames(sys._getframe())
            self.assertEqual(decode(count, arguments), expected[:count])
            if not arguments[4]._obj.value:
                break
            self.assertLessEqual(count, depth)
            entries += 1
        self.assertEqual(count, depth)
        if sys.version_info < (3, 12):
            self.assertEqual(entries, 0)

    def test_keys_tell_stacks_apart(self):
        key = LIBRARY.probe_last_key

        def inner(_):
            return self.check() and key()

        self.assertEqual(len({inner(n) for n in range(3)}), 1)
        self.assertEqual(len({inner(0), inner(0)}), 2, "two places on one line")
        self.assertEqual(len({key_of(inner) for key_of in (lambda f: f(0), lambda g: g(0))}), 2)
        again = [inner(n) for n in range(3) for _ in range(2)]
        self.assertEqual(len(set(again)), 1)

    def test_deep_recursion(self):
        def recurse(depth):
            return recurse(depth - 1) if depth else self.check()

        self.assertGreater(len(recurse(700)), 700)

    def test_callbacks_from_c(self):
        seen = []

        def compare(a, b):
            seen.append(self.check())
            return 0

        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        numbers = (ctypes.c_int * 4)(4, 3, 2, 1)
        for loader in (ctypes.CDLL, ctypes.PyDLL):
            loader(None).qsort(numbers, ctypes.c_size_t(4), ctypes.c_size_t(4), kind(compare))
        self.assertGreater(len(seen), 2)

    def test_while_traced_and_profiled(self):
        for install in (sys.settrace, sys.setprofile):
            old = sys.gettrace() if install is sys.settrace else sys.getprofile()

            def tracer(frame, event, argument):
                install(None)
                self.check()
                install(tracer)
                # In 3.9 the f_lineno of a frame with a local trace function is stale while tracing is off, as here.
                return tracer if sys.version_info >= (3, 10) else None

            install(tracer)
            try:
                self.check()
            finally:
                install(old)
            self.check()

    def test_frames_being_set_up(self):
        # Up to 3.11 a collection may start anywhere, so also while a function makes its cells or its generator. Then finalizers run on top of a frame
        # that the interpreter itself does not show yet.
        checks = []

        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(cycle):
                checks.append(self.check())

        def with_cells(a, b, c):
            def inner():
                return a, b, c
            return inner

        def generator(a):
            yield lambda: a

        async def coroutine(a):
            return lambda: a

        old = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for index in range(60):
                Cycle()
                with_cells(1, 2, 3)()
                next(generator(1))
                coroutine(1).close()
        finally:
            gc.set_threshold(*old)
        gc.collect()
        self.assertGreater(len(checks), 50)

    def test_threads(self):
        failures, rounds = [], [0]

        def work(depth):
            if depth:
                return work(depth - 1)
            for index in range(150):
                self.check(RELEASES_GIL if index % 2 else KEEPS_GIL)
                rounds[0] += 1

        def run(depth):
            try:
                work(depth)
            except BaseException as error:  # noqa: reported below
                failures.append(error)

        threads = [threading.Thread(target=run, args=(3 * index,)) for index in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertGreaterEqual(rounds[0], 6 * 150 // 2)

    def test_thread_without_python(self):
        self.assertEqual(LIBRARY.probe_walk_on_foreign_thread(), 0)

    def test_after_fork(self):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.check()
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


class CodeDeath(unittest.TestCase):
    @staticmethod
    def make(text="def f(probe):\n  return probe()\n"):
        scope = {}
        exec(compile(text, "short-lived.py", "exec"), scope)
        return scope.pop("f")  # so that the function and its globals make no cycle

    def test_watched_code_that_dies_changes_the_generation(self):
        function = self.make()
        address = function(LIBRARY.probe_watch_caller)
        self.assertEqual(address, id(function.__code__))
        before = LIBRARY.probe_generation()
        function(LIBRARY.probe_watch_caller)
        self.assertEqual(LIBRARY.probe_generation(), before)
        del function
        gc.collect()
        self.assertGreater(LIBRARY.probe_generation(), before)

    def test_unwatched_code_that_dies_changes_nothing(self):
        LIBRARY.probe_generation()  # ctypes makes its own objects on first use
        gc.collect()
        before = LIBRARY.probe_generation()
        for _ in range(1000):
            self.make()
        gc.collect()
        self.assertEqual(LIBRARY.probe_generation(), before)

    def test_rebirth_at_the_same_address(self):
        functions = [self.make() for _ in range(100)]
        dead = {function(LIBRARY.probe_watch_caller) for function in functions}
        before = LIBRARY.probe_generation()
        functions.clear()
        self.assertGreaterEqual(LIBRARY.probe_generation(), before + 100)
        reborn = [function for function in [self.make() for _ in range(200)] if id(function.__code__) in dead]
        self.assertGreater(len(reborn), 0)
        for function in reborn:
            self.assertEqual(function(LIBRARY.probe_watch_caller), id(function.__code__))
        before = LIBRARY.probe_generation()
        count = len(reborn)
        del function
        reborn.clear()
        self.assertGreaterEqual(LIBRARY.probe_generation(), before + count)

    def test_more_watched_than_the_set_holds(self):
        functions = [self.make() for _ in range(70000)]
        for function in functions:
            function(LIBRARY.probe_watch_caller)
        # Each death must be noticed or have been covered by an earlier one, after which everything is watched again.
        for _ in range(300):
            before = LIBRARY.probe_generation()
            function = functions.pop()
            function(LIBRARY.probe_watch_caller)
            del function
            self.assertGreater(LIBRARY.probe_generation(), before)


class Lines(unittest.TestCase):
    """Every instruction of some thousand real code objects, against the interpreter's own reading of its line tables."""

    @staticmethod
    def code_objects(code):
        yield code
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                yield from Lines.code_objects(constant)

    @staticmethod
    def ranges(code):
        """(begin, end, line or None) in bytes."""
        if hasattr(code, "co_lines"):
            return list(code.co_lines())
        starts = list(dis.findlinestarts(code))
        # Only changes of the line are listed, and a function whose first line holds no code has no entry at 0.
        ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
        return [(start, end, line) for (start, line), end in zip(starts, ends)]

    def test_standard_library(self):
        version, seen, without_line = LIBRARY.probe_version(), 0, 0
        for module in (asyncio.base_events, argparse, ctypes, dataclasses, enum, subprocess, threading, typing, unittest.case):
            with open(module.__file__, "rb") as file:
                top = compile(file.read(), module.__file__, "exec")
            for code in self.code_objects(top):
                table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
                for begin, end, line in self.ranges(code):
                    for offset in range(begin, end, 2):
                        found = LIBRARY.probe_line(version, table, len(table), code.co_firstlineno, offset)
                        if found != (line or 0):
                            self.fail("%s, offset %d: %d instead of %s" % (code, offset, found, line))
                        seen += 1
                        without_line += line is None
        self.assertGreater(seen, 20000)
        if sys.version_info >= (3, 11):
            self.assertGreater(without_line, 0)


class Detection(unittest.TestCase):
    def run_python(self, text, **environment):
        source = "import ctypes, sys\nlibrary = ctypes.CDLL(%r)\n" % PROBE_PATH + text
        return subprocess.run([sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env=dict(os.environ, **environment))

    def test_version(self):
        self.assertEqual(LIBRARY.probe_version(), sys.version_info[0] << 8 | sys.version_info[1])
        self.assertEqual(LIBRARY.probe_version_text().decode(), sys.version.split()[0])

    def test_final_answer_from_another_thread_first(self):
        result = self.run_python(
            "import threading\nanswers = []\n"
            "thread = threading.Thread(target=lambda: answers.append(library.probe_detect()))\n"
            "thread.start(); thread.join()\nprint(answers, library.probe_detect())\n")
        self.assertEqual(result.stdout.split(), [b"[1]", b"1"])

    def test_eval_range(self):
        low, high = ctypes.c_size_t(), ctypes.c_size_t()
        LIBRARY.probe_eval_range(ctypes.byref(low), ctypes.byref(high))
        address = ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p).value
        self.assertLessEqual(low.value, address)
        self.assertGreater(high.value, address + 256)
        # The native frames of this call are outside, up to the one that evaluates this function.
        addresses = (ctypes.c_size_t * 64)()
        count = LIBRARY.probe_native_stack(addresses, 64)
        inside = [low.value <= address < high.value for address in addresses[:count]]
        self.assertIn(True, inside)
        self.assertEqual(inside[0], False)

    def test_walking_after_finalization(self):
        result = self.run_python("library.probe_detect()\n", TIDEMARK_PROBE_WALK_AT_EXIT="1")
        self.assertEqual((result.returncode, result.stdout), (0, b"frames after finalization: 0\n"))

    def test_daemon_threads_walking_while_the_interpreter_goes(self):
        text = ("import threading, time\nlibrary.probe_detect()\nlibrary.probe_walk_for.argtypes = [ctypes.c_double]\n"
                "def deep(n):\n    return deep(n - 1) if n else library.probe_walk_for(3.0)\n"
                "for n in range(8):\n    threading.Thread(target=deep, args=(n * 5,), daemon=True).start()\n"
                "time.sleep(0.05)\n")
        for _ in range(6):
            result = self.run_python(text)
            self.assertEqual((result.returncode, result.stdout), (0, b""))


    def test_a_wrong_table_is_noticed(self):
        names = []
        while LIBRARY.probe_field_name(len(names)) is not None:
            names.append(LIBRARY.probe_field_name(len(names)).decode())
        self.assertGreater(len(names), 6)
        for index, name in enumerate(names):
            if name == "frame_instruction" and sys.version_info < (3, 11):
                continue  # f_lasti is a plain number there: any other number may be valid
            with self.subTest(field=name):
                self.assertEqual(LIBRARY.probe_shifted_layout_fits(index, 8), 0)
        self.assertEqual(LIBRARY.probe_shifted_layout_fits(0, 0), 1)


class Unsupported(unittest.TestCase):
    """Debug builds, free-threaded builds and versions missing in the table: no stacks, no fault."""

    def test_no_stacks(self):
        self.assertEqual(LIBRARY.probe_detect(), UNSUPPORTED)
        self.assertEqual(LIBRARY.probe_version(), sys.version_info[0] << 8 | sys.version_info[1])
        self.assertEqual(PROBE.raw(*PROBE.buffers()), 0)


def load_tests(loader, tests, pattern):
    debug = hasattr(sys, "gettotalrefcount")
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    usual = (3, 9) <= sys.version_info < (3, 15) and not debug and not free_threaded
    cases = [Stacks, Lines, CodeDeath, Detection] if usual else [Unsupported]
    if usual and LIBRARY.probe_detect() != SUPPORTED:
        raise AssertionError("this interpreter must be supported: " + sys.version)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)


if __name__ == "__main__":
    unittest.main()
