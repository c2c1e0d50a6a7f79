#!/usr/bin/env python3
"""Makes the seeds of safetensors_fuzz: small models written like the safetensors library's, an index and a configuration.

    tests/fuzz/make_safetensors_seeds.py tests/fuzz/corpus/safetensors
"""
import json
import math
import pathlib
import struct
import sys

BITS = {"F32": 32, "BF16": 16, "I64": 64, "BOOL": 8, "F8_E4M3": 8, "F4": 4, "C64": 64}


def model(tensors, metadata=None):
    """{name: (dtype, shape)} with zeros for values."""
    header, at = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (dtype, shape) in tensors.items():
        size = math.prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(at)


LAYERS = {f"model.layers.{layer}.{part}.weight": ("BF16", shape) for layer in (0, 1, 10) for part, shape in
          [("up", [4, 2]), ("norm", [2])]}
SEEDS = {
    "layers": model({"embed.weight": ("F32", [3, 2]), **LAYERS, "count": ("I64", [])}, {"format": "pt"}),
    "adapter": model({"base_model.model.q.lora_A.weight": ("F32", [2, 4]), "base_model.model.q.lora_B.weight": ("F32", [4, 2]),
                      "base_model.model.e.lora_embedding_A.default": ("F32", [2, 5])}),
    "types": model({"a": ("BOOL", [3]), "b": ("F8_E4M3", [0, 7]), "c": ("F4", [2, 2]), "d": ("C64", [1])}),
    "empty": model({}),
    "index": json.dumps({"metadata": {"total_size": 8}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors"}}).encode(),
    "config": json.dumps({"r": 8, "lora_alpha": 16, "target_modules": ["q"], "base_model_name_or_path": "a/b"}).encode(),
}


def main(folder):
    for name, seed in SEEDS.items():
        (pathlib.Path(folder) / f"{name}.safetensors").write_bytes(seed)


if __name__ == "__main__":
    main(sys.argv[1])
