"""The script that names a program's modules does not swallow exceptions of the program's signal handlers, and does not
run with audit hooks."""

import unittest

from driver import Case, program


class Interrupted(Case):
    def check_all_caught(self, kind):
        done = self.record_well(program("interrupted.py", kind))
        self.assertEqual(done.stdout.decode(), "every one was caught\nasked\n")
        self.assertTrue(self.summary()["data_quality"]["complete"])

    def test_exceptions_of_signal_handlers(self):
        self.check_all_caught("handler")

    def test_keyboard_interrupts(self):
        self.check_all_caught("keyboard")

    def test_audit_hooks(self):
        done = self.record_well(program("interrupted.py", "audit"))
        self.assertEqual(done.stdout.decode(), "trained\n")
        quality = self.summary()["data_quality"]
        self.assertTrue(quality["complete"])
        self.assertEqual([issue["id"] for issue in quality["issues"]], ["audit_hooks"])


if __name__ == "__main__":
    unittest.main()
