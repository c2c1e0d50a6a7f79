#!/usr/bin/env bash
# Runs the fuzz targets of the ASan build: `scripts/fuzz.sh [SECONDS]`, for SECONDS (default 30) with each.
# As many targets at a time as there are cores; where there are more cores than targets, each target gets several.
# TIDEMARK_FUZZ_TARGETS: the folder of the targets (default build/asan/tests/bin), so that they can run on another machine.
# A target's seeds are tests/fuzz/corpus/NAME, its words tests/fuzz/NAME.dict. What is found stays in build/fuzz/NAME.
cd "$(dirname "$0")/.."
. scripts/common.sh

seconds=${1:-30}
folder=${TIDEMARK_FUZZ_TARGETS:-build/asan/tests/bin}
targets=(tests/fuzz/*_fuzz.cpp)
processes=$(($(jobs) / ${#targets[@]}))

fuzz_one() {
  local name=$1 work=build/fuzz/$1 given=() executed
  mkdir -p "$work/corpus"
  [[ ! -d tests/fuzz/corpus/$name ]] || given+=("tests/fuzz/corpus/$name")
  [[ ! -f tests/fuzz/$name.dict ]] || given+=("-dict=tests/fuzz/$name.dict")
  ((processes < 2)) || given+=("-fork=$processes")
  "$folder/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$work/" "$work/corpus" "${given[@]}" >"$work/log" 2>&1 ||
    { tail -60 "$work/log" >&2 && say "fuzzing $name found an input: see $work" && return 1; }
  # With -fork: "#12345: cov: ...", the executions of all processes so far.
  executed=$(sed -nE 's/^stat::number_of_executed_units: *//p; s/^#([0-9]+): cov: .*/\1/p' "$work/log" | tail -n 1)
  say "fuzzed $name for $seconds s: $executed executions"
}

failed=0
running=()
wait_all() {
  local process
  for process in "${running[@]}"; do
    wait "$process" || failed=1
  done
  running=()
}
for target in "${targets[@]}"; do
  name=${target##*/}
  fuzz_one "${name%_fuzz.cpp}" &
  running+=($!)
  ((${#running[@]} % $(jobs) != 0)) || wait_all
done
wait_all
[[ $failed == 0 ]] || fail "fuzzing found inputs"
