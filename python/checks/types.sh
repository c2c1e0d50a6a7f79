#!/usr/bin/env bash
# What the package's sources, and the scripts that run inside the user's programs, have to pass: types.sh PYTHON, an interpreter with
# what python/requirements-test.txt lists.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(dirname "$1")
"$tools/mypy" python/tidemark
find src -name "*.py" -print0 | xargs -0 "$tools/mypy"
"$tools/pyright" --pythonpath "$1"
"$tools/ruff" check python src
"$tools/ruff" format --check python src
