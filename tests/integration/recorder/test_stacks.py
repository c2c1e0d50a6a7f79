"""The recorded stacks equal Python's own; native frames are PyTorch's; an unknown Python is reported."""

import json
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

from driver import PROGRAMS, PYTHON, Case, environment, run

LAYOUT = PROGRAMS.parents[2] / "src" / "collect" / "ring" / "layout.h"
# Frames of a recorded stack; deeper ones lose the outermost.
DEEPEST = int(re.search(r"kMaxFrames = (\d+);", LAYOUT.read_text())[1])


class Stacks(Case):
    def record_stacks(self, mode):
        """The stacks seen by stacks.py, and the recorded ones: {size: frames}. The file's name is not ASCII either."""
        script = shutil.copy(PROGRAMS / "stacks.py", self.folder / "größe_测试.py")
        utf8 = environment(PYTHONUTF8="1")
        said = json.loads(self.record_well([PYTHON, script], "--stacks", mode, env=utf8).stdout)
        sizes, stacks = self.sizes(), self.stacks()
        self.assertEqual(len(sizes), len(stacks))
        recorded = {size: stack for size, stack in zip(sizes, stacks) if str(size) in said}
        # Where a size was allocated twice, both have its last stack.
        self.assertEqual(len(recorded), len(said))
        return {int(size): [tuple(frame) for frame in frames] for size, frames in said.items()}, recorded

    def check_python_frames(self, said, recorded):
        self.assertGreaterEqual(len(said), 19)
        for size, frames in said.items():
            with self.subTest(size=size):
                expected = [tuple(frame) for frame in frames][-DEEPEST:]
                self.assertEqual([frame for frame in recorded[size] if frame[0] is not None], expected)
        self.assertEqual(len(said[1009]), 302)
        self.assertGreater(len(said[1009]), DEEPEST, "too deep on purpose")
        self.assertIn("stack_truncated", self.issue_ids())
        self.assertEqual(said[1001][-1][0], "größe_测试")

    def test_python_stacks(self):
        said, recorded = self.record_stacks("python")
        self.check_python_frames(said, recorded)
        functions = {function for stack in recorded.values() for function, _, _ in stack}
        self.assertNotIn(None, functions)

    def test_both_stacks(self):
        said, recorded = self.record_stacks("both")
        self.check_python_frames(said, recorded)
        for size, stack in recorded.items():
            native = [re.sub(r"\.so.*", "", os.path.basename(file)) for function, file, _ in stack if function is None]
            with self.subTest(size=size):
                # Below Python's frames; innermost the allocator, outermost the function that Python called.
                self.assertEqual([frame[0] for frame in stack[-len(native) :]], [None] * len(native))
                self.assertEqual(native[-1], "libc10")
                self.assertLess(native.index("libtorch_python"), native.index("libtorch_cpu"))
                self.assertEqual(set(native[native.index("libtorch_cpu") :]), {"libtorch_cpu", "libc10"})

    def test_native_stacks(self):
        allocate = "import torch; torch.empty(1001, dtype=torch.uint8); import os; os._exit(0)"
        self.record_well([PYTHON, "-c", allocate], "--stacks", "native")
        (stack,) = self.stacks()
        self.assertEqual({function for function, _, _ in stack}, {None})
        libraries = [os.path.basename(file) for _, file, _ in stack]
        self.assertTrue(libraries[0].startswith(("python", "libc.so")), libraries)
        self.assertTrue(libraries[-1].startswith("libc10.so"), libraries)
        (call_site,) = self.device()["call_sites_at_peak"]
        names = " ".join(frame["function"] for frame in call_site["stack"]["frames"])
        self.assertIn("at::_ops::empty_memory_format::call(", names)

    def test_unknown_python(self):
        """A copy of the interpreter with version 3.77: events have no stacks, and the summary has the reason."""
        where = "import sys, sysconfig; print(sys._base_executable, sysconfig.get_config_var('LIBDIR'), sys.base_prefix)"
        executable, libraries, prefix = run([PYTHON, "-c", where]).stdout.decode().split()
        version = run([PYTHON, "-c", "import platform; print(platform.python_version())"]).stdout.decode().strip()
        unknown = re.sub(r"\.(\d+)\.", lambda minor: "." + "7" * len(minor[1]) + ".", version)
        shared = Path(libraries, f"libpython{sys.version_info[0]}.{version.split('.')[1]}.so.1.0")
        original = shared if shared.exists() and shared.name in run(["ldd", executable]).stdout.decode() else Path(executable)
        copy = self.folder / original.name
        # Linkers let one string be the end of another, so the bytes before it are not checked.
        copy.write_bytes(original.read_bytes().replace(f"{version}\0".encode(), f"{unknown}\0".encode()))
        copy.chmod(0o755)
        path = run([PYTHON, "-c", "import sys; print(':'.join(filter(None, sys.path)))"]).stdout.decode().strip()
        variables = {"PYTHONHOME": prefix, "PYTHONPATH": path}
        if original == shared:
            variables["LD_PRELOAD"] = str(copy)  # the program opens it by this name
        interpreter = PYTHON if original == shared else copy
        look = "import sys, torch; torch.ones(10); print(sys.version.split()[0])"
        done = self.record_well([interpreter, "-c", look], "--stacks", "both", env=environment(**variables))
        self.assertEqual(done.stdout.decode().strip(), unknown)
        self.assertEqual(self.sizes(), [40])
        self.assertEqual([function for function, _, _ in self.stacks()[0] if function is not None], [])
        (issue,) = [issue for issue in self.summary()["data_quality"]["issues"] if issue["id"] == "python_unsupported"]
        self.assertIn(unknown, issue["text"])
        text = self.read("summary", self.output).decode()
        self.assertIn(unknown, text[text.index("Data quality") :])


if __name__ == "__main__":
    unittest.main()
