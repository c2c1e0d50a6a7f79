// Shared by the tests of the ledger.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "analyze/ledger/ledger.h"
#include "analyze/ledger/samples.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {

inline constexpr Device kManaged = {DeviceType::cuda_managed, 0};
inline constexpr Device kPinned = {DeviceType::cuda_host, 0};

inline SampledProcess process(ProcessKind kind, std::optional<std::uint64_t> bytes, std::string name = {},
                              std::int64_t pid = 77) {
  return {pid, kind, bytes, std::move(name)};
}

// "pytorch 610", "library NCCL 40", "process other.py n/a": the lines in a form that compares easily.
inline std::vector<std::string> lines_of(const LedgerBreakdown& ledger) {
  constexpr std::array kParts = {"pytorch", "library", "context", "process"};
  std::vector<std::string> words;
  for (const LedgerLine& line : ledger.lines) {
    words.push_back(std::string(kParts[static_cast<std::size_t>(line.part)]) +
                    (line.name.empty() ? "" : " " + line.name) + " " +
                    (line.bytes ? std::to_string(*line.bytes) : "n/a"));
  }
  return words;
}

inline Ledger analyze(const Store& store, const LedgerOptions& options = {}) {
  const Symbols symbols(store.definitions);
  auto ledger = analyze_ledger(store, symbols, options);
  EXPECT_TRUE(ledger.ok()) << ledger.error().message;
  return ledger.ok() ? std::move(*ledger) : Ledger{};
}

inline LedgerDevice analyze_one(const Scenario& scenario, const LedgerOptions& options = {}) {
  Ledger ledger = analyze(scenario.store(), options);
  EXPECT_EQ(ledger.devices.size(), 1U);
  return ledger.devices.empty() ? LedgerDevice{} : ledger.devices.front();
}

/// The samples that are chosen while a recording is read.
inline std::vector<DeviceSamples> samples_of(const Scenario& scenario) {
  LedgerCollector collector;
  const Overview overview = scenario.overview(
      "run.tide", [&](const SampleRecord& sample, const EventsSoFar& events) { collector.add(sample, events); });
  return std::move(collector).finish(overview.last_event_ns);
}

inline std::vector<LedgerExtremes> extremes_of(const Scenario& scenario,
                                               const std::optional<std::string>& device = std::nullopt) {
  return ledger_extremes(scenario.overview(), samples_of(scenario), device);
}

inline LedgerOptions at(std::uint64_t time_ns) {
  LedgerOptions options;
  options.at = {Moment::Kind::time, time_ns, 0};
  return options;
}

// Everything that there can be on one device. PyTorch reserves 600, of which 560 are allocated; its allocator took 620
// from the driver; NCCL took 40, the program's own library 5. By the driver's word the process holds 750 and another
// one 200, and 960 are used.
inline Scenario everything() {
  Scenario scenario;
  const LocationId main = scenario.python("main", "train.py", 1);
  const auto driver_stack = [&](const char* module) {
    return scenario.stack({main, scenario.native(module, 1), scenario.native("/usr/lib/libcudart.so.12", 2),
                           scenario.native("/usr/lib/libcuda.so.1", 3),
                           scenario.native("/opt/lib/libtidemark_preload.so", 4)});
  };
  const StackId allocator = driver_stack("/opt/torch/lib/libc10_cuda.so");
  const StackId nccl = driver_stack("/opt/nvidia/libnccl.so.2");
  const StackId own = driver_stack("/home/me/kernels.cpython-312-x86_64-linux-gnu.so");
  const SampledDeviceId gpu = scenario.sampled_gpu(0, 1000);
  scenario.used(5, gpu, 20);
  scenario.allocate(10, "segments", 620, kDriver, allocator);
  scenario.allocate(11, "nccl", 25, kDriver, nccl);
  scenario.allocate(12, "nccl2", 15, kDriver, nccl);
  scenario.allocate(13, "own", 5, kDriver, own);
  scenario.allocate(14, "managed", 300, kManaged, own);
  scenario.allocate(15, "pinned", 70, kPinned, own);
  scenario.totals(kGpu, 0, 600);
  scenario.allocate(20, "tensor", 560, kGpu);
  scenario.processes(22, gpu,
                     {process(ProcessKind::other, 200, "python other.py"),
                      process(ProcessKind::recorded, 750, "python train.py", 123)});
  scenario.used(24, gpu, 960);
  scenario.free(30, "nccl");
  scenario.free(31, "tensor");
  scenario.used(35, gpu, 940);
  scenario.free(40, "own");
  return scenario;
}

}  // namespace tidemark::testing
