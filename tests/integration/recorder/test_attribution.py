"""Modules and tensors in a recording equal the program's own; and collecting them changes nothing."""

import json
import unittest

from driver import Case, program


class Recording:
    """Modules and tensors of one recording."""

    def __init__(self, records):
        def table(kind):
            return [fields for name, fields in records if name == kind]

        self.text = [fields["text"] for fields in table("string")]
        self.addresses = [int(fields["address"], 16) for fields in table("nn_module")]
        self.names = {}  # of a module: (root, path, class)
        for fields in table("nn_module_name"):
            text = [None if fields[key] is None else self.text[fields[key]] for key in ("path", "class")]
            self.names[fields["nn_module"]] = (fields["root"], *text)
        self.tensors = table("tensor")
        self.locations, self.stacks = table("location"), table("stack")
        self.allocations = [fields for fields in table("event") if fields["kind"] == "allocate"]

    def calls(self, size):
        """For each allocation of that size the enclosing module calls, outermost first."""
        found = []
        for event in self.allocations:
            if event["size"] != size:
                continue
            modules, stack = [], event["stack"]
            while stack is not None:
                modules.insert(0, self.locations[self.stacks[stack]["location"]].get("nn_module"))
                stack = self.stacks[stack]["parent"]
            found.append([module for module in modules if module is not None])
        return found

    def tree(self, address):
        """{path: (address, class)} of the outermost module at an address."""
        return {
            path: (self.addresses[module], name)
            for module, (root, path, name) in self.names.items()
            if root is not None and self.addresses[root] == address
        }

    def told(self, role):
        """For each tensor with that role: (address of its module, name, state), and its recorded properties."""
        for tensor in self.tensors:
            if tensor["role"] == role:
                module = tensor["nn_module"]
                state = "" if tensor["state"] is None else self.text[tensor["state"]]
                place = [int(tensor["address"], 16), tensor["storage_bytes"], tensor["bytes"]]
                kind = [self.text[tensor["dtype"]], tensor["shape"], tensor["requires_grad"]]
                owner = None if module is None else self.addresses[module]
                yield (owner, self.text[tensor["name"]], state), place + kind


class Attribution(Case):
    def record_model(self, *options):
        """The program's output, and the file it wrote about itself."""
        facts = self.folder / "facts.json"
        output = self.record_well(program("model.py", facts), *options).stdout
        return output, json.loads(facts.read_text())

    def test_a_model(self):
        plain, _ = self.record_model("--attribute", "off")
        for kind, _ in self.dump():
            self.assertNotIn(kind, ("nn_module", "nn_module_name", "tensor"))
        for path in self.folder.glob("*.tide"):
            path.unlink()

        output, said = self.record_model()
        self.assertEqual(output, plain)
        found = Recording(self.dump())
        net = said["modules"][""][0]
        self.check_names(found, said, net)
        self.check_tensors(found, said)
        self.check_training(found, said)
        self.check_calls(found, said)
        (worker,) = [name for name in self.recordings() if name != "run.tide"]
        self.check_worker(Recording(self.dump(worker)), said, net)
        self.assertTrue(self.summary()["data_quality"]["complete"])

    def check_names(self, found, said, net):
        self.assertEqual(found.tree(net), {path: tuple(module) for path, module in said["modules"].items()})

    def check_tensors(self, found, said):
        """Parameters and buffers: each once, by its first name, and nothing else of this model."""
        for role in ("parameter", "buffer"):
            wanted = {}
            for name, (is_role, *place) in said["tensors"].items():
                module, _, own = name.rpartition(".")
                if is_role == role:
                    wanted[said["modules"][module][0], own, ""] = place
            told = [(key, place) for key, place in found.told(role) if key[0] in {key[0] for key in wanted}]
            self.assertEqual(len(told), len(dict(told)), "told once, for nothing moved")
            self.assertEqual(dict(told), wanted)

    def check_training(self, found, said):
        """Gradients at steps 1, 2, 3, 4 and 8; states when they first exist."""

        def owner(name):
            module, _, own = name.rpartition(".")
            return said["modules"][module][0], own

        gradients = {}
        for key, place in found.told("gradient"):
            gradients.setdefault(key, []).append(place[:5])
        asked = [said["gradients"][step - 1] for step in (1, 2, 3, 4, 8)]
        for name in said["gradients"][0]:
            if name != "embedding values":
                self.assertEqual(gradients[*owner(name), ""], [step[name] for step in asked], name)
        values = [places for (_, own, _), places in gradients.items() if own == "weight" and len(places) == 10]
        self.assertEqual(len(values), 1, "the sparse gradient has indices and values")
        self.assertEqual(values[0][1::2], [step["embedding values"] for step in asked])
        states = {key: place[:5] for key, place in found.told("optimizer_state")}
        self.assertEqual(len([key for key in states if key[2] == "exp_avg"]), len(said["gradients"][0]) - 1)
        for key, place in said["states"][0].items():
            name, state = key.split()
            if state != "step" or place[1]:
                self.assertEqual(states[*owner(name), state], place, key)

    def check_calls(self, found, said):
        for size, paths in said["probes"].items():
            calls = found.calls(int(size))
            self.assertTrue(calls)
            for modules in calls:
                names = [found.names[module][1] for module in modules]
                # Under its other name, and on a thread without the model around it, a block is still the same.
                self.assertIn(names, (paths, paths[1:]), size)
        self.assertEqual({found.addresses[modules[-1]] for modules in found.calls(5006)}, {said["thread"]})
        # One module got the address of another.
        (first,), (second,) = found.calls(5004)[0], found.calls(5005)[0]
        self.assertEqual(found.addresses[first], said["same_address"])
        self.assertEqual(found.addresses[second], said["same_address"])
        self.assertEqual(found.names[first], (first, "", "__main__.Probe"))
        self.assertEqual(found.names[second], (second, "", "__main__.Other"))

    def check_worker(self, found, said, net):
        """A forked process sends everything again. First it called only a part of the model."""
        self.assertEqual(found.tree(net), {path: tuple(module) for path, module in said["modules"].items()})
        for modules in found.calls(5002):
            self.assertEqual(found.names[modules[-1]][1:], ("layers.1.probe", "__main__.Probe"))

    def test_without_stacks(self):
        output, _ = self.record_model("--stacks", "none")
        self.assertIn("'torch_function': ", output.decode())
        self.assertEqual(Recording(self.dump()).addresses, [])


if __name__ == "__main__":
    unittest.main()
