"""training_steps.py counts training steps from calls of step(), and from marks; without PyTorch."""

import unittest
from pathlib import Path
from types import SimpleNamespace

SCRIPT = Path(__file__).resolve().parents[3] / "src" / "phantom" / "gpu" / "training_steps.py"


class TrainingSteps(unittest.TestCase):
    class Optimizer:
        def __init__(self, *parameters):
            self.param_groups = [{"params": list(parameters)}]

    def setUp(self):
        names = {}
        exec(compile(SCRIPT.read_text(encoding="utf-8"), str(SCRIPT), "exec", dont_inherit=True), names)
        self.steps = names["TrainingSteps"](self.Optimizer, 3)
        self.moment, self.begin, self.end = (names[name] for name in ("MOMENT", "RANGE_BEGIN", "RANGE_END"))

    def optimizer(self):
        return self.Optimizer(SimpleNamespace(is_cuda=True))

    def complete(self, *optimizers):
        """The complete training steps after each call, and whether the last call completed one."""
        return [(self.steps.stepped(optimizer), self.steps.count) for optimizer in optimizers]

    def test_each_optimizer_of_a_step(self):
        one, other = self.optimizer(), self.optimizer()
        self.assertEqual(self.complete(one, other, one, other), [(False, 0), (True, 1), (False, 1), (True, 2)])
        del other  # it is ignored from now on
        self.assertEqual(self.complete(one, one), [(True, 3), (True, 4)])

    def test_one_that_follows_rarely(self):
        often, rarely = self.optimizer(), self.optimizer()
        self.assertEqual(self.complete(*[often] * 5), [(False, 0), (False, 1), (False, 2), (False, 3), (False, 4)])
        self.assertEqual(self.complete(rarely), [(True, 5)])

    def test_one_that_never_follows_is_waited_for_16_steps(self):
        often, never = self.optimizer(), self.optimizer()
        self.assertEqual([complete for complete, _ in self.complete(*[often] * 20)], [False] * 19 + [True])
        self.assertEqual((self.steps.count, self.steps.idle), (20, 1))
        self.assertIsNotNone(never)

    def test_one_that_is_made_late_is_waited_for_in_the_last_step(self):
        early = self.optimizer()
        self.assertEqual(self.complete(early, early), [(True, 1), (True, 2)])
        late = self.optimizer()
        self.assertEqual(self.complete(early, late), [(False, 2), (True, 3)])

    def marked(self, *kinds):
        """The complete steps after each mark."""
        return [(self.steps.marked(kind), self.steps.count)[1] for kind in kinds]

    def test_marks_of_a_program_without_an_optimizer(self):
        self.assertEqual(self.marked(*[self.begin, self.end] * 3), [0, 1, 1, 2, 2, 3])
        self.assertEqual((self.steps.is_last(), self.steps.by_marks, self.steps.end()), (True, True, False))

    def test_moments_end_the_step_before(self):
        self.assertEqual(self.marked(*[self.moment] * 3), [0, 1, 2])
        self.assertEqual((self.steps.end(), self.steps.count), (True, 3))  # with the program

    def test_an_optimizer_tells_more_surely_than_marks(self):
        on_host = self.Optimizer(SimpleNamespace(is_cuda=False))
        self.assertEqual(self.marked(self.moment, self.moment), [0, 1])
        optimizer = self.optimizer()
        self.assertEqual(self.marked(self.moment, self.begin, self.end), [1, 1, 1])
        self.assertEqual(self.complete(optimizer), [(True, 1)])  # the earlier ones were of something else
        self.assertEqual((self.marked(self.moment, self.moment), self.steps.by_marks, self.steps.end()), ([1, 1], False, False))
        self.assertIsNotNone(on_host)

    def test_wrappers_and_those_of_the_cpu_are_not_waited_for(self):
        optimizer = self.optimizer()
        wrapper = self.Optimizer(*optimizer.param_groups[0]["params"])
        on_host = self.Optimizer(SimpleNamespace(is_cuda=False))
        self.assertEqual(self.complete(optimizer, optimizer), [(True, 1), (True, 2)])
        self.assertIsNotNone((wrapper, on_host))


if __name__ == "__main__":
    unittest.main()
