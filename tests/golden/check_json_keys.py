"""Every key of the JSON in tests/golden/expected is described in docs/commands.md."""

import glob
import json
import os
import re
import sys


def keys_of(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys_of(item)


def main(folder, page):
    with open(page, encoding="utf-8") as file:
        documented = set(re.findall(r'"(\w+)"', file.read()))
    missing = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        if "speedscope" in path:  # the format of another tool
            continue
        with open(path, encoding="utf-8") as file:
            for key in keys_of(json.load(file)):
                if key not in documented:
                    missing.setdefault(key, os.path.basename(path))
    for key, path in sorted(missing.items()):
        print(f"docs/commands.md does not describe the JSON key '{key}' ({path})")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
