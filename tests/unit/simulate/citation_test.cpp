// The result of a simulation replaces a guess.
#include <gtest/gtest.h>

#include "analyze/oom/explain.h"

namespace tidemark {
namespace {

Explanation failed_once() {
  Explanation explanation;
  OomFailure& failure = explanation.failures.emplace_back();
  failure.request.bytes = 100;
  failure.findings.push_back({OomCause::fragmentation, 300});
  OomFix guess;
  guess.kind = OomFixKind::expandable;
  guess.certain = false;
  failure.fixes.push_back(guess);
  return explanation;
}

SimulatedSettings run(const char* settings, std::uint64_t passed, std::optional<std::uint64_t> out_of_memory = {}) {
  SimulatedSettings run;
  run.settings = settings;
  run.passed_failures = passed;
  run.out_of_memory_ns = out_of_memory;
  return run;
}

Simulation simulation_of(std::vector<SimulatedSettings> runs) {
  Simulation simulation;
  simulation.torch_version = "2.15.0";
  simulation.recorded_failures = 1;
  simulation.runs = std::move(runs);
  return simulation;
}

TEST(Citation, TheBestSettingsThatMeetTheRequestAreAFix) {
  Explanation explanation = failed_once();
  ASSERT_TRUE(wants_simulation(explanation));
  cite_simulation(simulation_of({run("a:1", 0), run("b:1", 1), run("c:1", 1), run("d:1", 1, 5)}), explanation);
  const auto& fixes = explanation.failures[0].fixes;
  ASSERT_EQ(fixes.size(), 1U);
  EXPECT_EQ(fixes[0].kind, OomFixKind::settings);
  EXPECT_EQ(fixes[0].settings, "b:1");
  EXPECT_EQ(fixes[0].bytes, 100U);
  EXPECT_EQ(explanation.simulated_by, "PyTorch 2.15.0");
}

TEST(Citation, AGuessThatDoesNotHoldIsNoFix) {
  Explanation explanation = failed_once();
  cite_simulation(simulation_of({run("expandable_segments:True", 0)}), explanation);
  EXPECT_TRUE(explanation.failures[0].fixes.empty());
}

// The replay met the request with the recorded settings: no evidence for other settings.
TEST(Citation, ASimulationOfAnotherCourseIsNotCited) {
  Explanation explanation = failed_once();
  Simulation simulation = simulation_of({run("b:1", 1)});
  simulation.check.passed_failures = 1;
  cite_simulation(simulation, explanation);
  EXPECT_EQ(explanation.failures[0].fixes[0].kind, OomFixKind::expandable);
  EXPECT_TRUE(explanation.simulated_by.empty());
}

TEST(Citation, DemandWantsNoSimulation) {
  Explanation explanation = failed_once();
  explanation.failures[0].findings[0].cause = OomCause::demand;
  EXPECT_FALSE(wants_simulation(explanation));
}

}  // namespace
}  // namespace tidemark
