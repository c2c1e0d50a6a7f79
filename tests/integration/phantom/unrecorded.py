"""Runs a program on the phantom GPU of a plan, but without the plan's recorder: one that records itself.

Prints its exit code and the lines of its output, as JSON.
"""

import json
import os
import subprocess
import sys

environment = {name: value for name, value in os.environ.items() if name not in ("TIDEMARK_SOCKET", "TIDEMARK_LIBRARY")}
libraries = environment["LD_PRELOAD"].split(":")
environment["LD_PRELOAD"] = ":".join(path for path in libraries if "libtidemark_preload" not in path)
done = subprocess.run(sys.argv[1:], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
print(json.dumps({"exit_code": done.returncode, "lines": done.stdout.splitlines()}))
