"""model_script.py sends new parts of a model and its optimizers, once, and changes nothing in the program."""

import ast
import gc
import struct
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from script_host import SOURCES, Module, Optimizer, Tensor, fake_torch, run_script


def read_text(data, at):
    (length,) = struct.unpack_from("<I", data, at)
    return data[at + 4 : at + 4 + length].decode(), at + 4 + length


def read_entries(data):
    """Entries that lane readers get from a ring::DefinitionKind::model: ("module", path, class) and ("tensor", role, name, state, …)."""
    found, at = [], 0
    while at < len(data):
        if data[at] == 1:
            path, at = read_text(data, at + 17)
            name, at = read_text(data, at)
            found.append(("module", path, name))
            continue
        _, role, kind, index, trained, address, storage, used, _ = struct.unpack_from("<BBbbBQQQQ", data, at)
        name, at = read_text(data, at + struct.calcsize("<BBbbBQQQQ"))
        state, at = read_text(data, at)
        dtype, at = read_text(data, at)
        shape = struct.unpack_from(f"<{data[at]}Q", data, at + 1)
        at += 1 + 8 * len(shape)
        found.append(("tensor", role, name, state, (kind, index), bool(trained), address, storage, used, dtype, shape))
    return found


class ModelScript(unittest.TestCase):
    def setUp(self):
        modules, self.hooks = fake_torch()
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        self.sent, self.named, self.freed = [], [], []
        self.number, self.outermost, self.due, self.room = 7, [], False, True
        self.script = run_script(
            "model_script",
            connection=lambda: self.number,
            outermost_modules=lambda: list(self.outermost),
            write_model=self.write,
            modules_named=lambda addresses: self.named.extend(struct.unpack(f"{len(addresses) // 8}Q", addresses)),
            module_freed=lambda reference: self.freed.append(reference.address),
            has_audit_hooks=lambda: self.audited,
            names_are_due=lambda: self.due,
            send_optimizer=lambda optimizer: self.script["send_optimizer_now"](optimizer),
        )
        self.audited = False

    def write(self, entries):
        if self.room:
            self.sent += read_entries(entries)
        return int(self.room)

    def run_once(self):
        """The entries sent by one run."""
        self.sent.clear()
        again = self.script["run"]()
        return again, list(self.sent)

    def model(self):
        return Module(layer=Module({"weight": Tensor(0x1000, (2, 3)), "bias": None}, {"mean": Tensor(0x2000, (3,), 8)}))

    def test_modules_and_tensors_are_sent_once(self):
        model = self.model()
        self.outermost.append(model)
        name = f"{Module.__module__}.{Module.__qualname__}"
        tensors = [
            ("tensor", 1, "weight", "", (0, 0), True, 0x1000, 24, 24, "float32", (2, 3)),
            ("tensor", 2, "mean", "", (0, 0), True, 0x2000, 24, 24, "float32", (3,)),
        ]
        self.assertEqual(self.run_once(), (False, [("module", "", name), ("module", "layer", name), *tensors]))
        self.assertEqual(self.named, [id(model), id(model._modules["layer"])])
        self.assertEqual(self.run_once(), (False, []))

    def test_what_changes_is_sent_again(self):
        model = self.model()
        self.outermost.append(model)
        self.run_once()
        model._modules["layer"]._parameters["weight"] = Tensor(0x3000, (2, 3))
        self.assertEqual([entry[6] for entry in self.run_once()[1]], [0x3000])

    def test_a_new_recording_gets_everything(self):
        self.outermost.append(self.model())
        first = self.run_once()
        self.number = 8
        self.assertEqual(self.run_once(), first)

    def test_what_found_no_room_is_sent_again(self):
        self.outermost.append(self.model())
        self.room = False
        self.assertEqual(self.run_once(), (False, []))
        self.assertEqual(self.named, [])
        self.room = True
        self.assertEqual(len(self.run_once()[1]), 4)

    def test_it_waits_for_a_recording(self):
        self.outermost.append(self.model())
        self.number = 0
        self.assertEqual(self.run_once(), (True, []))

    def test_a_freed_module_is_reported(self):
        model = self.model()
        self.outermost.append(model)
        self.run_once()
        address = id(model._modules["layer"])
        del model._modules["layer"]
        gc.collect()
        self.assertEqual(self.freed, [address])

    def test_a_cycle_of_modules_ends(self):
        model = self.model()
        model._modules["layer"]._modules["parent"] = model
        self.outermost.append(model)
        self.assertEqual([entry[1] for entry in self.run_once()[1] if entry[0] == "module"], ["", "layer"])

    def test_views_count_with_the_storage_that_they_are_in(self):
        place = self.script["storage_place"]
        self.assertEqual(place(Tensor(0x1000, (4,), storage_bytes=64)), (0x1000, 16))  # it begins its storage
        self.assertEqual(place(Tensor(0x1000, (4,), offset=2, storage_bytes=64)), (0x1000, 64))
        self.assertEqual(place(Tensor(0x1000, (2, 2), contiguous=False, storage_bytes=64)), (0x1000, 64))

    def test_states_of_an_optimizer(self):
        model = self.model()
        weight = model._modules["layer"]._parameters["weight"]
        weight.grad = Tensor(0x4000, (2, 3))
        self.outermost.append(model)
        self.run_once()
        self.sent.clear()
        optimizer = Optimizer(weight)
        optimizer.state[weight] = {"exp_avg": Tensor(0x5000, (2, 3)), "step": 3, "parts": [Tensor(0x6000, (1,))]}
        (hook,) = self.hooks
        hook(optimizer)
        gradient, average, part = self.sent
        self.assertEqual((gradient[1:4], gradient[6]), ((3, "weight", ""), 0x4000))
        self.assertEqual((average[1:4], average[6]), ((4, "weight", "exp_avg"), 0x5000))
        self.assertEqual((part[1:4], part[6]), ((4, "weight", "parts.0"), 0x6000))

    def test_optimizers_are_looked_at_ever_more_seldom(self):
        optimizer = Optimizer(Tensor(0x1000))
        (hook,) = self.hooks
        looked = []
        with mock.patch.object(self.script["model"], "send_optimizer", lambda _: looked.append(step)):
            for step in range(1, 17):  # noqa: B007
                hook(optimizer)
            self.assertEqual(looked, [1, 2, 3, 4, 8, 16])
            self.due = True  # a module without a name was seen
            hook(optimizer)
        self.assertEqual(looked[-2:], [16, 16])

    def test_garbage_is_collected_again_after_an_error(self):
        with mock.patch.object(self.script["model"], "send_optimizer", side_effect=RuntimeError):
            with self.assertRaises(RuntimeError):
                self.script["send_optimizer_now"](Optimizer(Tensor(0x1000)))
        self.assertTrue(gc.isenabled())

    def test_nothing_runs_where_there_are_audit_hooks(self):
        (hook,) = self.hooks
        self.audited = True
        with mock.patch.object(self.script["model"], "send_optimizer", side_effect=AssertionError):
            hook(Optimizer(Tensor(0x1000)))
        self.assertEqual(self.script["steps"], {})


class Syntax(unittest.TestCase):
    def test_every_script_is_one_of_python_3_8(self):
        scripts = [*SOURCES.glob("collect/process/**/*.py"), *SOURCES.glob("phantom/**/*.py"), *SOURCES.glob("launch/*.py")]
        self.assertGreaterEqual(len(scripts), 5)
        for script in scripts:
            ast.parse(script.read_text(encoding="utf-8"), str(script), feature_version=(3, 8))


if __name__ == "__main__":
    unittest.main()
