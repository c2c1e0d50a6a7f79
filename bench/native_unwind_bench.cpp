// The cost of a native stack: walks of 10, 30 and 60 frames with cached rules, computing one rule, and glibc's
// backtrace() of the same stacks for comparison.
#include <benchmark/benchmark.h>
#include <execinfo.h>

#include <array>

#include "collect/process/native/unwinder.h"

namespace {

using tidemark::process::native_caller_context;
using tidemark::process::native_forget;
using tidemark::process::native_stack_bounds;
using tidemark::process::native_walk;
using tidemark::process::StackBounds;

constexpr std::size_t kMaxFrames = 64;
using Body = void (*)(benchmark::State& state, int frames);

// Frames of three shapes, so that neither rules nor branches are all alike.
template <unsigned kShape>
[[gnu::noinline]] void descend(benchmark::State& state, int depth, int frames, Body body) {
  std::array<volatile char, kShape * 40 + 8> local;
  local[0] = static_cast<char>(depth);
  if (depth == 0) {
    body(state, frames);
  } else {
    descend<(kShape + 1) % 3>(state, depth - 1, frames, body);
  }
  benchmark::DoNotOptimize(local[0]);
}

[[gnu::noinline]] void walk_warm(benchmark::State& state, int frames) {
  const auto context = native_caller_context();
  const StackBounds bounds = native_stack_bounds();
  std::array<std::uintptr_t, kMaxFrames> pcs;
  bool truncated = false;
  std::size_t count = 0;
  for (auto _ : state) {
    count = native_walk(context, bounds, 0, 0, pcs.data(), static_cast<std::size_t>(frames), &truncated);
    benchmark::DoNotOptimize(pcs);
  }
  state.counters["frames"] = static_cast<double>(count);
  state.counters["ns_per_frame"] = benchmark::Counter(
      static_cast<double>(count) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

[[gnu::noinline]] void walk_cold(benchmark::State& state, int frames) {
  const auto context = native_caller_context();
  const StackBounds bounds = native_stack_bounds();
  std::array<std::uintptr_t, kMaxFrames> pcs;
  bool truncated = false;
  for (auto _ : state) {
    state.PauseTiming();
    native_forget();
    state.ResumeTiming();
    native_walk(context, bounds, 0, 0, pcs.data(), static_cast<std::size_t>(frames), &truncated);
    benchmark::DoNotOptimize(pcs);
  }
}

[[gnu::noinline]] void glibc_backtrace(benchmark::State& state, int frames) {
  std::array<void*, kMaxFrames> pcs;
  for (auto _ : state) {
    benchmark::DoNotOptimize(backtrace(pcs.data(), frames));
  }
}

void run(benchmark::State& state, Body body) {
  const auto frames = static_cast<int>(state.range(0));
  descend<0>(state, frames, frames, body);
}

void native_walk_warm(benchmark::State& state) {
  run(state, walk_warm);
}
void native_walk_cold(benchmark::State& state) {
  run(state, walk_cold);
}
void backtrace_of_glibc(benchmark::State& state) {
  run(state, glibc_backtrace);
}

BENCHMARK(native_walk_warm)->Arg(10)->Arg(30)->Arg(60);
BENCHMARK(native_walk_cold)->Arg(10)->Arg(30)->Arg(60);
BENCHMARK(backtrace_of_glibc)->Arg(10)->Arg(30)->Arg(60);

}  // namespace
