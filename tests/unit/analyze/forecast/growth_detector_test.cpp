#include "analyze/forecast/growth_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analyze/leaks/growth.h"
#include "analyze/leaks/objects.h"

namespace tidemark {
namespace {

std::vector<double> series(int steps, double (*held)(int step)) {
  std::vector<double> values;
  for (int step = 0; step < steps; ++step) values.push_back(held(step));
  return values;
}

TEST(SeriesGrowthTest, WhatEachStepLeavesIsALeak) {
  const auto growth = find_series_growth(series(40, [](int step) { return 1000.0 + 64 * step; }), 4, 1);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->classification, GrowthClass::leak);
  EXPECT_DOUBLE_EQ(growth->bytes_per_step.value, 64);
}

TEST(SeriesGrowthTest, MemoryFreedLaterIsNoLeak) {
  EXPECT_FALSE(find_series_growth(series(60, [](int step) { return 100.0 * (step % 10); }), 6, 1));
  const auto growth =
      find_series_growth(series(100, [](int step) { return 100.0 * (step % 10) + 10.0 * step; }), 10, 1);
  ASSERT_TRUE(growth) << "a sawtooth that leaks";
  EXPECT_EQ(growth->classification, GrowthClass::leak);
  EXPECT_EQ(growth->released_after, 9u);
}

TEST(SeriesGrowthTest, AJumpWarmUpAndGrowthThatStoppedAreNoLeaks) {
  const auto classified = [](double (*held)(int step)) {
    const auto growth = find_series_growth(series(80, held), 8, 1);
    return growth ? growth->classification : GrowthClass::too_few;
  };
  EXPECT_NE(classified([](int step) { return step < 40 ? 100.0 : 900.0; }), GrowthClass::leak);
  EXPECT_NE(classified([](int step) { return 1e6 * (1 - std::exp(-step / 20.0)); }), GrowthClass::leak);
  EXPECT_EQ(classified([](int step) { return 100.0 * std::min(step, 30); }), GrowthClass::stopped);
}

TEST(GrowthDetectorTest, NamesTheSourceThatLeaks) {
  GrowthDetector detector;
  for (std::uint64_t step = 0; step < 300; ++step) {
    const std::vector<SourceBytes> sources = {{1, 5'000'000}, {2, 100'000 + 4096 * step}, {3, 4096 * (step % 7)}};
    detector.end_step(step * 500'000'000, sources);
  }
  const LiveGrowths found = detector.assess();
  EXPECT_TRUE(found.leaks());
  ASSERT_EQ(found.sources.size(), 1u);
  EXPECT_EQ(found.sources[0].source, 2u);
  EXPECT_NEAR(found.sources[0].bytes_per_step->value, 4096, 1);
  EXPECT_NEAR(found.sources[0].bytes_per_minute.value, 4096 * 120, 500);
}

TEST(GrowthDetectorTest, FirstStepDoesNotAffectTheRate) {
  GrowthDetector detector;
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::vector<SourceBytes> sources = {{1, 4096 * step}};
    detector.end_step(step == 0 ? 0 : 60'000'000'000 + step * 500'000'000, sources);
  }
  EXPECT_NEAR(detector.assess().whole()->bytes_per_minute.value, 4096 * 120, 1);
}

TEST(GrowthDetectorTest, FollowsABoundedNumberOfSources) {
  GrowthDetector detector({.least_bytes_per_minute = 0, .most_sources = 8});
  for (std::uint64_t step = 0; step < 50; ++step) {
    std::vector<SourceBytes> sources = {{0, 1'000'000 + 8192 * step}};
    for (std::uint64_t other = 1; other < 30; ++other) sources.push_back({step * 100 + other, other});
    detector.end_step(step * 1'000'000'000, sources);
  }
  const LiveGrowths found = detector.assess();
  ASSERT_TRUE(found.leaks());
  EXPECT_EQ(found.sources.front().source, 0u);
}

LiveGrowths watch(int seconds, double (*used)(double time)) {
  GrowthDetector detector;
  for (int second = 0; second < seconds; ++second) {
    UsageSample sample;
    sample.time_ns = static_cast<std::uint64_t>(second) * 1'000'000'000;
    sample.used_bytes = static_cast<std::uint64_t>(used(second));
    detector.add(sample);
  }
  return detector.assess();
}

TEST(GrowthDetectorTest, SamplesAloneDistinguishALeakFromASawtooth) {
  EXPECT_FALSE(watch(600, [](double time) { return 1e9 + 1e8 * std::fmod(time, 20); }).leaks());
  const LiveGrowths found = watch(600, [](double time) { return 4e9 + 1e8 * std::fmod(time, 7) + 5e6 * time; });
  ASSERT_TRUE(found.leaks());
  EXPECT_NEAR(found.memory->bytes_per_minute.value, 60 * 5e6, 6e7);
  EXPECT_FALSE(watch(60, [](double time) { return 4e9 + 5e6 * time; }).leaks()) << "too short to tell";
}

TEST(UsualMistakeTest, FollowsFromReferencesOrTheStack) {
  const auto of_chain = [](const char* chain) {
    const std::vector<std::string> chains = {chain};
    return match_usual_mistake({false, chains, {}}).mistake;
  };
  EXPECT_EQ(of_chain("__main__.losses[12].grad_fn → (1 node) → AddmmBackward0._saved_mat1"),
            UsualMistake::losses_with_graph);
  EXPECT_EQ(of_chain("__main__.val_scores[3].grad_fn → MulBackward0._saved_self"), UsualMistake::metrics_not_detached);
  EXPECT_EQ(of_chain("step.<locals>.cache['last']"), UsualMistake::unbounded_cache);
  EXPECT_EQ(of_chain("<Hook>.seen[4]"), UsualMistake::capturing_hook);
  EXPECT_EQ(of_chain("net._forward_hooks[0].<locals>.kept[8]"), UsualMistake::capturing_hook);
  EXPECT_EQ(of_chain("net.mid._forward_hooks[8].<locals>.mean"), UsualMistake::repeated_hook);
  EXPECT_EQ(of_chain("__main__.kept[7]"), UsualMistake::growing_container);
  EXPECT_EQ(of_chain("__main__.model.weight"), UsualMistake::none);
  const std::vector<std::string> kept = {"<Tensor>", "__main__.kept[7]"};  // the loss itself
  EXPECT_EQ(match_usual_mistake({true, kept, {}, true}).mistake, UsualMistake::losses_with_graph);
  EXPECT_EQ(match_usual_mistake({true, kept, {}}).mistake, UsualMistake::tensors_with_graph);
  EXPECT_EQ(of_chain("__main__.FEATURES[3].grad_fn → ReluBackward0._saved_result"), UsualMistake::tensors_with_graph);
  EXPECT_EQ(match_usual_mistake({true, kept, {}}).confidence, Confidence::exact);
  const std::vector<std::string> scores = {"__main__.val_scores[3]"};
  EXPECT_EQ(match_usual_mistake({true, scores, {}}).mistake, UsualMistake::metrics_not_detached);
  EXPECT_EQ(holder_of("__main__.losses[12].grad_fn → (1 node) → AddmmBackward0._saved_mat1"), "__main__.losses");
  EXPECT_EQ(holder_of("__main__.history['train'][7]"), "__main__.history");
  EXPECT_EQ(holder_of("__main__.pairs[7].first"), "__main__.pairs");
  EXPECT_EQ(holder_of("__main__.model.weight"), "__main__.model.weight");
  EXPECT_EQ(holder_of("]]"), "]]");
  EXPECT_EQ(match_usual_mistake({true, kept, {}}).holder, "__main__.kept");
  const MatchedMistake graph = match_usual_mistake({true, {}, {}});
  EXPECT_EQ(graph.mistake, UsualMistake::tensors_with_graph) << "nothing tells that losses are kept";
  EXPECT_EQ(graph.confidence, Confidence::estimated);
  EXPECT_EQ(match_usual_mistake({true, {}, {}, true}).mistake, UsualMistake::losses_with_graph);
}

}  // namespace
}  // namespace tidemark
