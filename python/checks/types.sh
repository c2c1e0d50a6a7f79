#!/usr/bin/env bash
# What the package's sources have to pass: types.sh PYTHON, an interpreter with what python/requirements-test.txt lists.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(dirname "$1")
"$tools/mypy" python/tidemark
"$tools/pyright" --pythonpath "$1"
"$tools/ruff" check python
"$tools/ruff" format --check python
