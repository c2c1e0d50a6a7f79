// Shared by the tests of the exports: a recording with known numbers, and its bytes in a format.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "export/format.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {

/// cuda:0 peaks at 30 ns with a (300) and b (500) alive and 24 bytes unrecorded; then a is freed. c (100) had been
/// allocated and freed before. On the CPU d (64) has no stack.
inline Scenario small_run() {
  Scenario scenario;
  const LocationId main = scenario.python("main", "/w/train.py", 9);
  const StackId forward = scenario.stack({main, scenario.python("forward", "/w/model.py", 3)});
  const StackId step = scenario.stack({main, scenario.python("step", "/w/train.py", 5)});
  const ThreadId thread = scenario.thread(77, "python");
  scenario.totals(kGpu, 24, 4096);
  scenario.allocate(5, "c", 100, kGpu, step, thread);
  scenario.free(8, "c");
  scenario.allocate(10, "a", 300, kGpu, forward, thread);
  scenario.allocate(20, "d", 64, kCpu);
  scenario.allocate(30, "b", 500, kGpu, step, thread);
  scenario.free(40, "a");
  return scenario;
}

/// Owners in small_run(): c is temporary, a an activation of layers.0, b a parameter, d unknown.
inline Attribution small_attribution() {
  Attribution attribution;
  attribution.modules = {{"layers.0", "Linear", Component::mlp}};
  attribution.blocks = {
      {{}, {}, Phase::forward, Component::other, Category::temporary, Confidence::estimated, Confidence::unknown},
      {ModulePathId{0},
       {},
       Phase::forward,
       Component::mlp,
       Category::activation,
       Confidence::estimated,
       Confidence::exact},
      {},
      {ModulePathId{0}, {}, Phase::other, Component::mlp, Category::parameter, Confidence::exact, Confidence::exact}};
  return attribution;
}

/// Output of a format for a store; fails the test if it refuses.
inline std::string exported(const Store& store, std::string_view name, const ExportOptions& options = {}) {
  std::string bytes;
  for (const ExportFormat& format : export_formats()) {
    if (format.name != name) continue;
    Symbols symbols(store.definitions);
    const auto written = format.write(store, symbols, options,
                                      [&](std::string_view piece) {
                                        bytes += piece;
                                        return Result<void>();
                                      },
                                      {});
    EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error().message);
  }
  return bytes;
}

}  // namespace tidemark::testing
