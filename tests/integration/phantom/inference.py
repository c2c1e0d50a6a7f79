"""An inference loop that marks its steps and uses an extension. Prints the extension's and PyTorch's values at its beginning as JSON.

Arguments: the extension, and the file with the code of its kernel.
"""

import ctypes
import json
import sys

import torch

MIB = 1 << 20
extension = ctypes.CDLL(sys.argv[1])
for name in ("take", "take_from_pool"):
    getattr(extension, name).restype = ctypes.c_void_p
tidemark = ctypes.CDLL(None)
with open(sys.argv[2], "rb") as file:
    code = ctypes.create_string_buffer(file.read())
extension.load(code)
model = torch.nn.Linear(1024, 1024, device="cuda")
kept = extension.take(ctypes.c_size_t(48 * MIB))
print(json.dumps({"registers": extension.registers(), "launched": extension.launch(ctypes.c_void_p(kept))}), flush=True)
with torch.inference_mode():
    for batch in range(9):
        tidemark.tidemark_range_begin(b"batch %d" % batch)
        workspace = extension.take(ctypes.c_size_t(16 * MIB))
        model(torch.randn(256, 1024, device="cuda"))
        extension.give_back(ctypes.c_void_p(workspace))
        if batch == 1:
            extension.take_from_pool(ctypes.c_size_t(1))
        print("batch", batch, file=sys.stderr, flush=True)
        tidemark.tidemark_range_end(b"batch %d" % batch)
