// Speed and memory of reading PyTorch snapshots; and speed of replaying their traces.
//
//   bench/make_large_snapshot.py lora_python_stacks.pickle.xz large.pickle
//   TIDEMARK_SNAPSHOT=large.pickle snapshot_bench
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "import/pytorch_snapshot/read_snapshot.h"
#include "import/pytorch_snapshot/replay/replay.h"

namespace tidemark::pytorch {
namespace {

/// Of this process so far.
double peak_resident_mebibytes() {
  struct ::rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void read(benchmark::State& state) {
  const char* path = std::getenv("TIDEMARK_SNAPSHOT");
  if (path == nullptr) {
    state.SkipWithError("TIDEMARK_SNAPSHOT names no file");
    return;
  }
  const double before = peak_resident_mebibytes();
  std::size_t entries = 0;
  std::size_t stacks = 0;
  for (auto _ : state) {
    const auto snapshot = read_snapshot(path);
    if (!snapshot.ok()) {
      state.SkipWithError(snapshot.error().message.c_str());
      return;
    }
    entries = 0;
    for (const DeviceTrace& trace : snapshot->traces) entries += trace.entries.size();
    stacks = snapshot->definitions.stacks.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(entries));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(path)));
  state.counters["entries"] = static_cast<double>(entries);
  state.counters["stack nodes"] = static_cast<double>(stacks);
  state.counters["MiB resident"] = peak_resident_mebibytes() - before;
}
BENCHMARK(read)->Unit(benchmark::kMillisecond)->UseRealTime();

/// A minimal sink.
class Calls : public ReplaySink {
 public:
  void segment_reserved(const ReplaySegment&, const TracePosition&, const MemoryTotals&) override { ++count; }
  void segment_released(const ReplaySegment&, const TracePosition&, const MemoryTotals&) override { ++count; }
  void block_allocated(const ReplayBlock&, const TracePosition&, const MemoryTotals&) override { ++count; }
  void free_requested(std::uint32_t, const TracePosition&, const MemoryTotals&) override { ++count; }
  void free_completed(std::uint32_t, const TracePosition&, const MemoryTotals&) override { ++count; }
  void out_of_memory(const ReplayOutOfMemory&, const TracePosition&, const MemoryTotals&) override { ++count; }
  void annotated(std::uint32_t, const TracePosition&, const MemoryTotals&) override { ++count; }
  void marked(Action, const TracePosition&, const MemoryTotals&) override { ++count; }

  std::size_t count = 0;
};

void replay_trace(benchmark::State& state) {
  const char* path = std::getenv("TIDEMARK_SNAPSHOT");
  const auto snapshot = read_snapshot(path != nullptr ? path : "");
  if (!snapshot.ok()) {
    state.SkipWithError(snapshot.error().message.c_str());
    return;
  }
  Calls calls;
  std::size_t entries = 0;
  for (auto _ : state) {
    for (const DeviceTrace& trace : snapshot->traces) {
      replay(*snapshot, trace.device, calls);
      entries += trace.entries.size();
    }
  }
  benchmark::DoNotOptimize(calls.count);
  state.SetItemsProcessed(static_cast<std::int64_t>(entries));
}
BENCHMARK(replay_trace)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tidemark::pytorch

BENCHMARK_MAIN();
