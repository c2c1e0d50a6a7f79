#!/usr/bin/env bash
# Builds Tidemark, records a LoRA fine-tuning with it and shows where the memory went.
# Leaves demo.tide and timeline.png in the repository's root. Options go to examples/lora_finetune.py.
cd "$(dirname "$0")/.."
. scripts/common.sh

python=$(command -v python3 || true)
version=$([[ -z $python ]] || torch_version "$python" || true)
if [[ -n $version ]]; then
  scripts/setup.sh --no-tests
else
  scripts/setup.sh --no-tests --torch
  python=/usr/bin/python3
  version=$(torch_version "$python") || fail "$python cannot import torch"
fi

say "building the release"
mkdir -p build
cmake --preset release -DTIDEMARK_TESTS=OFF >build/configure.log 2>&1 || { cat build/configure.log >&2 && exit 1; }
cmake --build --preset release --target tidemark tidemark_preload
tidemark=build/release/bin/tidemark

say "recording examples/lora_finetune.py with $python, torch $version"
rm -f demo.tide
"$tidemark" run -o demo.tide -- "$python" examples/lora_finetune.py "$@"
say "tidemark summary demo.tide"
"$tidemark" summary demo.tide
"$tidemark" timeline demo.tide -o timeline.png
say "the recording is demo.tide, its timeline is in timeline.png; next: $tidemark tree demo.tide"
