#!/usr/bin/env bash
# Makes the wheel for CPython 3.9 and newer on any Linux of this architecture with glibc 2.28 or newer:
#
#   scripts/wheel.sh [FOLDER]        (default: dist)
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/portable.sh
output=${1:-dist}
tools=$portable_folder/tools/bin
pack_wheel "$tools/python" build/portable

# It has nothing to add: it checks that the wheel fulfils the platform in its name, and gives it that name.
log=build/portable/auditwheel.log
PATH=$tools:$PATH auditwheel repair --plat "manylinux_${portable_glibc/./_}_$(uname -m)" --wheel-dir "$output" \
  build/portable/wheel/*.whl >"$log" 2>&1 || { cat "$log" >&2 && exit 1; }
wheel=$(sed -n 's/.*Fixed-up wheel written to //p' "$log")
say "$wheel ($(du -h "$wheel" | cut -f1))"
