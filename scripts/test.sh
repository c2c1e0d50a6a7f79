#!/usr/bin/env bash
# Builds the release and runs every test, with Debian's PyTorch 1.13 and the newest one; tests of the phantom GPU also with the
# version of ../shared/data. Options go to ctest.
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/setup.sh --torch --torch-newest --python --torch-truth
pythons=(/usr/bin/python3 "$(torch_newest_python)")
for python in "${pythons[@]}"; do
  say "testing with $python, torch $(torch_version "$python")" || fail "$python cannot import torch"
done

mkdir -p build
cmake --preset release -DTIDEMARK_TESTS=ON "-DTIDEMARK_TESTED_WITH_SANITIZERS=${TIDEMARK_TESTED_WITH_SANITIZERS:-OFF}" \
  "-DTIDEMARK_NIGHTLY=${TIDEMARK_NIGHTLY:-OFF}" \
  "-DTIDEMARK_TEST_PYTHONS=$(IFS=';' && echo "${pythons[*]}")" \
  "-DTIDEMARK_PHANTOM_PYTHONS=$torch_truth_folder/bin/python" "-DTIDEMARK_PYTHON_TOOLS=$python_tools_folder/bin/python" \
  "-DTIDEMARK_NVML_INCLUDE=$nvml_include" "-DTIDEMARK_CUPTI_INCLUDE=$(cupti_include)" >build/configure.log 2>&1 ||
  { cat build/configure.log >&2 && exit 1; }
cmake --build --preset release

if ! nvidia-smi -L >/dev/null 2>&1; then
  say "no GPU here: the tests that need one are skipped; scripts/gpu_check.sh runs them where there is one"
fi
ctest --preset release -j "$(test_jobs)" "$@"
