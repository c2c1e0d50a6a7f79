# Shared by the scripts beside it: source it from the repository's root.
# shellcheck shell=bash
set -euo pipefail

# The torch that `setup.sh --torch-newest` installs; on Debian 12's Python 3.11 the newest of PyPI.
torch_newest_version=2.15.0
torch_newest_folder=${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}/torch-$torch_newest_version
# The torch with which ../shared/data was recorded on a real GPU: plans are compared with it.
torch_truth_version=2.11.0
# shellcheck disable=SC2034  # used by setup.sh and test.sh
torch_truth_folder=${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}/torch-$torch_truth_version
# The Python package's test environment: a virtual environment of `setup.sh --python`.
# shellcheck disable=SC2034  # used by setup.sh and test.sh
python_tools_folder=${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}/python-tools
# NVIDIA's header of NVML, from a wheel of 120 KB that `setup.sh --torch-newest` unpacks: this project's declarations are compared with it.
nvml_version=12.9.79
nvml_folder=${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}/nvml-$nvml_version
# shellcheck disable=SC2034  # used by test.sh
nvml_include=$nvml_folder/nvidia/nvml_dev/include

# Compiler of scripts/portable.sh: a clang that knows the C library of older distributions, from PyPI.
zig_version=0.17.1
portable_glibc=2.28
# shellcheck disable=SC2034  # used by setup.sh, portable.sh and wheel.sh
portable_folder=${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}/zig-$zig_version-glibc-$portable_glibc

# Compilations are cached with everything else of the project.
export CCACHE_DIR=${CCACHE_DIR:-${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}/ccache}

say() { printf '== %s\n' "$*" >&2; }

fail() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

# The interpreter of the newest torch: TIDEMARK_TORCH_NEWEST_PYTHON, or the one that setup.sh installed.
torch_newest_python() { printf '%s\n' "${TIDEMARK_TORCH_NEWEST_PYTHON:-$torch_newest_folder/bin/python}"; }

# The folder of NVIDIA's headers of CUDA and CUPTI in the newest torch (with Triton, which compiles with them); prints nothing if there is none.
cupti_include() {
  "$(torch_newest_python)" -c '
import importlib.util
triton = importlib.util.find_spec("triton")
if triton: print(triton.submodule_search_locations[0] + "/backends/nvidia/include")'
}

# Prints the version of PyTorch of interpreter $1; fails if it has none.
torch_version() { "$1" -c 'import torch; print(torch.__version__)' 2>/dev/null; }

jobs() { nproc 2>/dev/null || echo 2; }

# Many tests wait for programs half of their time: twice as many as there are cores keep these busy.
test_jobs() { echo $(($(jobs) * 2)); }

# pack_wheel PYTHON BUILD: makes BUILD/wheel/*.whl of a build without changes. PYTHON has scikit-build-core.
pack_wheel() {
  rm -rf "${2:?}/wheel"
  "$1" -m pip wheel -q --no-deps --no-build-isolation --wheel-dir "$2/wheel" \
    --config-settings=build-dir="$2/packing" --config-settings=cmake.define.TIDEMARK_BUILT="$(realpath "$2")" .
}
