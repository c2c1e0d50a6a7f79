#!/usr/bin/env bash
# On a machine with an NVIDIA GPU and a python3 with PyTorch: compares recorded peaks with PyTorch's count, to the byte,
# checks that the ledger adds up, compares plans with the GPU's values, the monitors' values for a training with PyTorch's and
# nvidia-smi's, and measures the cost of recording.
#
#   scripts/gpu_check.sh RESULTS [--only PART]      writes RESULTS/gpu_check.json and RESULTS/gpu_check.txt
#
# PART is devices, peaks, released, ledgers, costs, plan, driver_calls, settings, categories, advice, anomalies, loaders, package,
# monitors, batches, guard or examples.
#
# TIDEMARK_PREBUILT  a folder made by scripts/package.sh, for machines without the libraries to build with or a network;
#                    otherwise the release is built here; the examples also need scripts/package_cpp.sh
cd "$(dirname "$0")/.."
. scripts/common.sh

[[ $# -ge 1 ]] || fail "usage: scripts/gpu_check.sh RESULTS [--only PART]"
nvidia-smi -L >/dev/null 2>&1 || fail "no NVIDIA GPU here"
torch_version python3 >/dev/null || fail "python3 has no PyTorch"
if [[ -n ${TIDEMARK_PREBUILT:-} ]]; then
  tidemark=$TIDEMARK_PREBUILT/bin/tidemark
else
  scripts/setup.sh --no-tests
  mkdir -p build
  cmake --preset release -DTIDEMARK_TESTS=OFF >build/configure.log 2>&1 || { cat build/configure.log >&2 && exit 1; }
  cmake --build --preset release --target tidemark tidemark_preload tidemark_phantom tidemark_shared
  tidemark=build/release/bin/tidemark
fi
"$tidemark" --version >/dev/null || fail "$tidemark does not run here"
exec python3 scripts/gpu_check.py --tidemark "$tidemark" --results "$1" "${@:2}"
