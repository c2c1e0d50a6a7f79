// Steps and phases beside a timeline, and the passes that advice works with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <tuple>
#include <vector>

#include "analyze/attribution/phase_runs.h"
#include "analyze/timeline/timeline.h"
#include "unit/analyze/model_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kCpu;
using testing::kGpu;
using testing::ModelScenario;
using Span = std::tuple<Phase, std::uint64_t, std::uint64_t>;

// A block at each time that is a multiple of ten.
class PhaseRun : public ModelScenario {
 public:
  PhaseRun() {
    const NnModuleId model = root("Net");
    forward_ = stack({script(10), call(model)});
    backward_ = stack({script(12), package("torch/autograd/__init__.py", "backward")});
    recompute_ = stack({script(12), package("torch/autograd/__init__.py", "backward"),
                        package("torch/utils/checkpoint.py", "CheckpointFunction.backward"), call(model)});
    optimizer_ =
        stack({script(13), package("torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper")});
    loader_ = stack({script(8), package("torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__")});
    main_ = thread(1, "python");
    other_ = thread(2, "loader");
  }

  void forward(Device device = kGpu) { make(forward_, main_, device); }
  void backward() { make(backward_, main_); }
  void recompute() { make(recompute_, main_); }
  void optimizer() { make(optimizer_, main_); }
  void load(bool on_main = true) { make(loader_, on_main ? main_ : other_); }
  void between() { make(stack({script(20)}), main_); }

  [[nodiscard]] std::vector<Span> spans() const { return listed(attribute_blocks(store()).phases); }
  [[nodiscard]] std::vector<Span> passes() const { return listed(pass_spans(attribute_blocks(store()).phases)); }
  [[nodiscard]] TimelineBands bands(std::size_t most) const {
    const Store run = store();
    return find_bands(run, attribute_blocks(run), most);
  }

 private:
  static std::vector<Span> listed(const std::vector<PhaseSpan>& spans) {
    std::vector<Span> list;
    for (const PhaseSpan& span : spans) list.emplace_back(span.phase, span.from, span.to);
    return list;
  }
  void make(StackId stack, ThreadId thread, Device device = kGpu) {
    now_ += 10;
    allocate(now_, std::to_string(now_), 512, device, stack, thread);
  }

  StackId forward_, backward_, recompute_, optimizer_, loader_;
  ThreadId main_, other_;
  std::uint64_t now_ = 0;
};

TEST(PhaseSpans, FollowOneAnother) {
  PhaseRun run;
  run.load();         // 0
  run.forward();      // 1
  run.forward(kCpu);  // 2: whatever the device
  run.backward();     // 3
  run.recompute();    // 4
  run.backward();     // 5
  run.optimizer();    // 6
  run.between();      // 7
  run.forward();      // 8
  EXPECT_THAT(run.spans(),
              ElementsAre(Span(Phase::data, 0, 1), Span(Phase::forward, 1, 3), Span(Phase::backward, 3, 4),
                          Span(Phase::recomputation, 4, 5), Span(Phase::backward, 5, 6), Span(Phase::optimizer, 6, 7),
                          Span(Phase::other, 7, 8), Span(Phase::forward, 8, 9)));
  EXPECT_THAT(run.passes(), ElementsAre(Span(Phase::forward, 1, 3), Span(Phase::backward, 3, 6),
                                        Span(Phase::optimizer, 6, 8), Span(Phase::forward, 8, 9)));
}

// A batch loaded by another thread during the pass does not belong to it, and does not end it.
TEST(PhaseSpans, AreNotEndedByOtherThreads) {
  PhaseRun run;
  run.forward();    // 0
  run.load(false);  // 1
  run.forward();    // 2
  run.backward();   // 3
  run.load(false);  // 4
  run.optimizer();  // 5
  run.load();       // 6: the program's own thread
  EXPECT_THAT(run.spans(), ElementsAre(Span(Phase::forward, 0, 3), Span(Phase::backward, 3, 5),
                                       Span(Phase::optimizer, 5, 6), Span(Phase::data, 6, 7)));
}

TEST(TimelineBands, ContainThePhases) {
  PhaseRun run;
  run.forward();    // at 10
  run.backward();   // at 20
  run.optimizer();  // at 30
  run.between();    // at 40
  run.free(95, "40");
  const TimelineBands bands = run.bands(100);
  ASSERT_TRUE(bands.phases);
  std::vector<Span> found;
  for (const TimelinePhase& phase : *bands.phases) found.emplace_back(phase.phase, phase.begin_ns, phase.end_ns);
  EXPECT_THAT(found,
              ElementsAre(Span(Phase::forward, 10, 20), Span(Phase::backward, 20, 30), Span(Phase::optimizer, 30, 40)));
  EXPECT_EQ(run.bands(2).phases, std::nullopt) << "more than can be listed";
}

TEST(TimelineBands, OmitASinglePhase) {
  PhaseRun run;
  run.between();
  run.backward();
  run.between();
  EXPECT_TRUE(run.bands(100).phases->empty());
}

TEST(TimelineBands, NumberStepsWhereThereIsRoom) {
  PhaseRun run;
  for (int step = 0; step < 12; ++step) {
    run.mark(Mark::Kind::point, static_cast<std::uint64_t>(step) * 100 + 5, "step " + std::to_string(step));
    run.allocate(static_cast<std::uint64_t>(step) * 100 + 10, "block" + std::to_string(step), 512, kGpu);
  }
  const TimelineBands all = run.bands(12);
  ASSERT_EQ(all.steps.size(), 12U);
  EXPECT_EQ(all.steps[7].number, 7U);
  EXPECT_EQ(all.steps[7].begin_ns, 705U);
  std::vector<std::uint64_t> numbers;
  for (const TimelineStep& step : run.bands(5).steps) numbers.push_back(step.number);
  EXPECT_THAT(numbers, ElementsAre(0, 5, 10));
}

TEST(TimelineBands, StridesAreRound) {
  EXPECT_EQ(step_stride(0, 10), 1U);
  EXPECT_EQ(step_stride(10, 10), 1U);
  EXPECT_EQ(step_stride(11, 10), 2U);
  EXPECT_EQ(step_stride(21, 10), 5U);
  EXPECT_EQ(step_stride(51, 10), 10U);
  EXPECT_EQ(step_stride(1001, 10), 200U);
}

// Cells of 25 ns: forward 0 to 60, nothing until 90, backward until 100.
TEST(TimelineBands, ACellShowsWhatTakesMostOfIt) {
  TimelineBands bands;
  bands.phases = {{Phase::forward, 0, 60}, {Phase::backward, 90, 100}};
  EXPECT_THAT(phase_cells(bands, 100, 4), ElementsAre(Phase::forward, Phase::forward, std::nullopt, std::nullopt));
  EXPECT_THAT(phase_cells(bands, 100, 10),
              ElementsAre(Phase::forward, Phase::forward, Phase::forward, Phase::forward, Phase::forward,
                          Phase::forward, std::nullopt, std::nullopt, std::nullopt, Phase::backward));
  EXPECT_THAT(phase_cells(bands, 100, 1), IsEmpty()) << "more phases than cells";
  EXPECT_THAT(phase_cells({}, 100, 4), IsEmpty());
}

}  // namespace
}  // namespace tidemark
