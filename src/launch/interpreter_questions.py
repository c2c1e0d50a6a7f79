# Prints facts about the interpreter that runs it and about its PyTorch, as JSON; interpreter_probe.cpp runs it. find_spec finds
# the package without importing it; its version.py is read as text.
import importlib.util
import json
import os
import re
import sys
import sysconfig

facts = {
    "executable": sys.executable,
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:3]),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"),
}
spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    facts["torch_folder"] = folder = os.path.dirname(spec.origin)
    with open(os.path.join(folder, "version.py")) as file:
        text = file.read()
    for name in "__version__", "cuda", "hip":
        found = re.search(rf"^{name}\s*(?::[^=\n]*)?=\s*['\"](.*)['\"]", text, re.M)
        facts["torch" + name] = found.group(1) if found else ""
print(json.dumps(facts))
