"""Every key of the JSON in tests/golden/expected is described on a page of docs/commands."""

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


def main(folder, pages):
    text = ""
    for page in sorted(glob.glob(os.path.join(pages, "*.md"))):
        with open(page, encoding="utf-8") as file:
            text += file.read()
    documented = set(re.findall(r'"(\w+)"', text))
    for path in re.findall(r"^\| `([\w.\[\]]+)` \|", text, re.MULTILINE):  # tables of keys
        documented |= set(re.findall(r"\w+", path))
    documented |= set(re.findall(r"\{(\w+)", text))  # values of "params", named in the texts of data quality
    missing = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        if "speedscope" in path:  # the format of another tool
            continue
        with open(path, encoding="utf-8") as file:
            document, _ = json.JSONDecoder().raw_decode(file.read())  # messages on stderr may follow
            for key in keys_of(document):
                if key not in documented:
                    missing.setdefault(key, os.path.basename(path))
    for key, path in sorted(missing.items()):
        print(f"no page of docs/commands describes the JSON key '{key}' ({path})")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
