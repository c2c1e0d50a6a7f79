#!/usr/bin/env bash
# Checks of the package's sources, and of the scripts that run inside user programs: types.sh PYTHON, an interpreter
# with the packages of python/requirements-test.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(dirname "$1")
"$tools/mypy" python/tidemark
find src -name "*.py" -print0 | xargs -0 "$tools/mypy"
"$tools/pyright" --pythonpath "$1"
"$tools/ruff" check python src
"$tools/ruff" format --check python src
