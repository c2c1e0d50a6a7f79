"""Whose memory it is, compared with what PyTorch's own tensors, and its saved-tensor hooks, say: on the phantom GPU, with real models."""

import importlib.util
import json
import unittest

from phantom import Case

HAS_MODELS = all(importlib.util.find_spec(name) for name in ("transformers", "peft", "torchvision"))
TENSORS = ("parameter", "buffer", "gradient", "optimizer_state")
MARKS = ("forward done", "backward done", "step done")


@unittest.skipUnless(HAS_MODELS, "this interpreter has no transformers, PEFT or torchvision")
class Categories(Case):
    def breakdown(self, file, at="peak", *options):
        read = self.read("breakdown", "--format", "json", "--top", "0", "--at", at, "--device", self.device, *options, file)
        (device,) = json.loads(read)["devices"]
        self.assertEqual(sum(category["bytes"] for category in device["categories"]) + device["unrecorded_bytes"], device["allocated_bytes"])
        return device

    def check(self, file, said, tensors_at=MARKS):
        """Categories add up to what PyTorch has allocated, and those of the model's tensors are what the tensors say."""
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
        named = sum(size for module, size in backward if module)
        self.assertGreaterEqual(named, 0.99 * sum(size for _, size in backward))

    def check_case(self, case):
        _, said, _ = self.plan("attributed.py", case)
        self.device = "cuda:0"
        self.check(self.output, said)

    def check_ranks(self, case, tensors_at=MARKS):
        _, ranks, _ = self.plan("attributed.py", case)
        files = {self.device_of(name): self.folder / name for name in self.recordings()}
        for said in ranks:
            self.device = f"cuda:{said['rank']}"
            self.check(files[self.device], said, tensors_at)

    def device_of(self, name):
        return next((part["device"] for part in self.summary(name)["devices"] if part["device"].startswith("cuda")), None)

    def test_lora(self):
        self.check_case("lora")

    def test_full_fine_tuning(self):
        self.check_case("llama")

    def test_convolutions(self):
        self.check_case("resnet")

    def test_data_parallel(self):
        self.check_ranks("ddp")

    def test_fully_sharded(self):
        # After the forward pass the outermost unit still has its gathered parameters, which are copies.
        self.check_ranks("fsdp2", ("backward done", "step done"))


if __name__ == "__main__":
    unittest.main()
