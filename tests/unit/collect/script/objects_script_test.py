"""objects_script.py loads the modules that answer requests, answers, and leaves the program's imports unchanged."""

import sys
import types
import unittest
from importlib.machinery import ModuleSpec
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from script_host import fake_torch, run_script

NAMES = b"_names", b"answered = []\n"
ANSWER = b"_answer", b"from ._names import answered\n\ndef answer(path):\n    answered.append(path)\n    return answered\n"


class ObjectsScript(unittest.TestCase):
    def setUp(self):
        self.path, self.modules = b"/tmp/question", [*NAMES, *ANSWER]
        self.script = run_script("objects_script", question=lambda: self.path, modules=lambda: self.modules)

    def without_torch(self):
        return mock.patch.dict(sys.modules, {"torch": None})

    def test_a_question_is_answered_with_the_modules(self):
        with self.without_torch():
            self.assertFalse(self.script["run"]())
        self.assertEqual(self.script["answer"].__globals__["answered"], ["/tmp/question"])

    def test_without_a_question_nothing_is_loaded(self):
        self.path = b""
        self.assertFalse(self.script["run"]())
        self.assertIsNone(self.script["answer"])

    def test_while_a_module_is_imported_the_question_waits(self):
        module = types.ModuleType("slow")
        module.__spec__ = ModuleSpec("slow", None)
        module.__spec__._initializing = True
        with mock.patch.dict(sys.modules, {**fake_torch()[0], "slow": module, "strange": object()}):
            self.assertFalse(self.script["run"]())
        self.assertIsNone(self.script["answer"])

    def test_the_program_can_import_what_it_could_before(self):
        before = set(sys.modules)
        with self.without_torch():
            self.script["run"]()
        self.assertEqual({name for name in sys.modules if "tidemark" in name}, {name for name in before if "tidemark" in name})

    def test_modules_that_fail_are_loaded_once(self):
        self.modules = [b"_answer", b"raise ValueError"]
        with self.without_torch():
            with self.assertRaises(ValueError):
                self.script["run"]()
            self.script["run"]()
        self.assertIsNone(self.script["answer"])


if __name__ == "__main__":
    unittest.main()
