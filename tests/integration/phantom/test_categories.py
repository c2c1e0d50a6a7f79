"""Memory by owner, compared with PyTorch's own tensors and its saved-tensor hooks: on the phantom GPU, with real models."""

import collections
import importlib.util
import json
import unittest

from phantom import Case

HAS_MODELS = all(importlib.util.find_spec(name) for name in ("transformers", "peft", "torchvision"))
WIDTH, HEAD_WIDTH, TOKENS, SEQUENCES = 256, 64, 128, 4  # as in attributed.py
CASES = ("lora", "llama", "checkpointed", "resnet", "ddp", "fsdp2")
SAVED = tuple(case for case in CASES if case != "ddp")  # their saved tensors are compared block by block
TENSORS = ("parameter", "buffer", "gradient", "optimizer_state")
MARKS = ("forward done", "backward done", "step done")


def bytes_in_blocks(saved):
    """{module: bytes} of the blocks of storages."""
    return collections.Counter({module: sum(-(-size // 512) * 512 for size in sizes) for module, sizes in saved})


@unittest.skipUnless(HAS_MODELS, "this interpreter has no transformers, PEFT or torchvision")
class Categories(Case):
    def breakdown(self, file, at="peak", *options):
        read = self.read("breakdown", "--format", "json", "--top", "0", "--at", at, "--device", self.device, *options, file)
        (device,) = json.loads(read)["devices"]
        self.assertEqual(sum(category["bytes"] for category in device["categories"]) + device["unrecorded_bytes"], device["allocated_bytes"])
        return device

    def check(self, file, said, tensors_at=MARKS):
        """Categories add up to PyTorch's allocated memory, and categories of the model's tensors equal the tensors' sizes."""
        for mark in MARKS:
            device = self.breakdown(file, mark)
            self.assertEqual(device["allocated_bytes"], said[mark]["allocated"])
            if mark in tensors_at:
                held = {category["category"]: category["tensor_bytes"] for category in device["categories"]}
                self.assertEqual({name: held.get(name, 0) for name in TENSORS}, {name: said[mark][name] for name in TENSORS}, mark)
        device = self.breakdown(file)
        unknown = sum(category["bytes"] for category in device["categories"] if category["category"] == "unknown")
        self.assertLess(unknown, device["allocated_bytes"] * 0.02)
        backward = [
            (module["module"], part["bytes"])
            for module in self.breakdown(file, "backward done", "--by", "module")["modules"]
            for part in module["parts"]
            if part["phase"] == "backward"
        ]
        named = sum(size for module, size in backward if module and not module.startswith("("))
        self.assertGreaterEqual(named, 0.99 * sum(size for _, size in backward))

    def by_module(self, file, at, wanted):
        """{module: bytes} of the given parts; None for memory outside of modules."""
        found = collections.Counter()
        for module in self.breakdown(file, at, "--by", "module")["modules"]:
            name = module["module"]
            for part in filter(wanted, module["parts"]):
                found[None if name and name.startswith("(") else name] += part["bytes"]
        return dict(found)

    def check_saved(self, file, said, also_kept=None):
        """Memory left by the forward pass in each module equals the saved-tensor hooks' count in another pass, and its loss, to the byte.

        Hooks see views: storages count. Saved parameters are not activations; inputs are, for the hooks.
        """
        held = self.by_module(file, "forward done", lambda part: part["category"] in ("activation", "input"))
        self.assertEqual(held, bytes_in_blocks(said["saved"]) + collections.Counter(also_kept))

    def test_programs(self):
        _, said, _ = self.plan("attributed.py", *CASES, TIDEMARK_UNROUNDED=",".join(SAVED))
        rows = json.loads(self.read("summary", "--format", "json", *self.folder.glob("*.tide")))["ranks"]["rows"]
        files = {row["pid"]: row["file"] for row in rows}
        for case, ranks in said.items():
            for rank in ranks:
                self.device = f"cuda:{rank['rank']}"
                with self.subTest(case, device=self.device):
                    getattr(self, f"check_{case}")(files[rank["pid"]], rank)
        self.assertEqual([len(said[case]) for case in CASES], [1, 1, 1, 1, 2, 2])

    def check_llama(self, file, said):
        self.check(file, said)
        self.check_saved(file, said)

    check_lora = check_resnet = check_llama

    def check_checkpointed(self, file, said):
        self.check(file, said)
        # Checkpoints keep their arguments, which hooks do not see: positions, and for the rotary embedding cosines and sines.
        self.check_saved(file, said, {"model": TOKENS * 8, "model.rotary_emb": 2 * TOKENS * HEAD_WIDTH * 4})
        recomputed = self.by_module(file, "first layer recomputed", lambda part: part["phase"] == "recomputation")
        wanted = bytes_in_blocks(said["saved without checkpointing"])
        wanted["model.layers.0"] -= SEQUENCES * TOKENS * WIDTH * 4  # its result, which is not computed again
        self.assertEqual(recomputed, {module: size for module, size in wanted.items() if module and module.startswith("model.layers.0")})

    def check_ddp(self, file, said):
        self.check(file, said)
        # The buckets have the size of their gradients.
        device = self.breakdown(file, "step done")
        copies = sum(category["bytes"] for category in device["categories"] if category["category"] == "copy")
        self.assertGreaterEqual(copies, said["step done"]["gradient"])

    def check_fsdp2(self, file, said):
        # After the forward pass the outermost unit still has its gathered parameters, which are copies.
        self.check(file, said, tensors_at=("backward done", "step done"))
        self.check_saved(file, said)
        gradients = self.by_module(file, "backward done", lambda part: part["category"] == "gradient")
        self.assertEqual(gradients, bytes_in_blocks(said["gradients of units"]))
        gathered = self.by_module(file, "forward done", lambda part: part["category"] == "copy")
        self.assertEqual(list(gathered), ["FSDPLlamaForCausalLM"])
        table = self.read("table", "--category", "copy", "--at", "forward done", "--device", self.device, file)
        self.assertIn(b"all-gather of FSDPLlamaForCausalLM", table)


if __name__ == "__main__":
    unittest.main()
