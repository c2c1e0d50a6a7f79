"""scripts/check_includes.py finds all violations of the rules, with their places, and nothing else."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "check_includes.py"


class CheckIncludes(unittest.TestCase):
    def check(self, **files):
        """Exit code and output for sources given as path_with_two_underscores_for_slashes="text"."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root, "src", name.replace("__", "/") + ".cpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def test_stages_below_may_be_included(self):
        code, output = self.check(
            analyze__oom__cause='#include "analyze/oom/cause.h"\n#include <vector>\n#include "store/store.h"\n',
            collect__process__lane='#include <cstring>\n#include <sys/mman.h>\n#include "collect/ring/layout.h"\n',
        )
        self.assertEqual((code, output), (0, ""))

    def test_stages_above_may_not(self):
        code, output = self.check(store__load='#include <string>\n\n#include "analyze/usage/summary.h"\n')
        self.assertEqual(code, 1)
        self.assertIn('src/store/load.cpp:3: "analyze/usage/summary.h": store may include base, allocator, trace only', output)

    def test_what_is_collected_never_sees_the_store(self):
        for stage in ("process", "machine", "recorder", "ring"):
            code, output = self.check(**{f"collect__{stage}__x": '# include "store/store.h"\n'})
            self.assertEqual((code, output.count("\n")), (1, 1), output)
            self.assertIn(f"src/collect/{stage}/x.cpp:1: ", output)

    def test_the_recorded_program_gets_no_runtime(self):
        code, output = self.check(collect__process__x='#include <atomic>\n#include <string>\n#include "base/units.h"\n')
        self.assertEqual(code, 1)
        self.assertNotIn(":1:", output)
        self.assertIn("src/collect/process/x.cpp:2: <string>", output)
        self.assertIn('src/collect/process/x.cpp:3: "base/units.h"', output)

    def test_paths_begin_at_the_root(self):
        self.assertEqual(self.check(base__x='#include "units.h"\n')[0], 1)

    def test_a_stage_without_rules(self):
        code, output = self.check(novel__x="int x;\n")
        self.assertEqual((code, output.count("src/novel/x.cpp:1: novel has no row in the table")), (1, 1))

    def test_each_room_of_the_table_is_a_folder(self):
        sys.path.insert(0, str(SCRIPT.parent))
        import check_includes

        rooms = check_includes.read_table()
        self.assertGreater(len(rooms), 20)
        for room in rooms:
            self.assertTrue((SCRIPT.parent.parent / "src" / room).is_dir(), room)


if __name__ == "__main__":
    unittest.main()
