"""Prints the folder of PyTorch's CMake package, if NVIDIA's runtime and headers are installed too.

Does not import PyTorch, which takes seconds.
"""

import importlib.util
from pathlib import Path

torch = Path(importlib.util.find_spec("torch").origin).parent
headers = torch.parent / "triton/backends/nvidia/include/crt/host_config.h"
if headers.exists() and any(torch.parent.glob("nvidia/*/lib/libcudart.so.*")):
    print(torch / "share/cmake")
