// Attribution in stacks.
#include "analyze/attribution/attributed_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyze/common/stack_names.h"
#include "unit/analyze/model_scenario.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> functions_of(const Store& store, std::size_t block) {
  Symbols symbols(store.definitions);
  std::vector<std::string> functions;
  for (const FrameName& frame : name_stack(symbols, store.blocks.stack[block]).frames) {
    functions.push_back(frame.function);
  }
  return functions;
}

// A forward pass through one Linear, and the backward pass on a thread of autograd without Python frames.
class AttributedStoreTest : public ::testing::Test {
 protected:
  AttributedStoreTest() {
    main_ = scenario_.thread(10, "python");
    autograd_ = scenario_.thread(11, "pt_autograd_0");
    const NnModuleId net = scenario_.root("model.Net");
    linear_ = ModulePathId{1};
    const NnModuleId linear = scenario_.module(net, "layers.0", "torch.nn.modules.linear.Linear");
    forward_ = scenario_.stack({scenario_.script(9), scenario_.call(net), scenario_.python("Net.forward", "/w/m.py", 5),
                                scenario_.call(linear),
                                scenario_.package("torch/nn/modules/linear.py", "Linear.forward", 125)});
    node_ = scenario_.node("torch::autograd::generated::AddmmBackward0", main_);
    scenario_.allocate(10, "activation", 100, kGpu, forward_, main_);
    attribution_.modules = {{"Net", "model.Net", Component::other}, {"layers.0", "Linear", Component::other}};
    attribution_.blocks.resize(1);
  }
  // Allocation of a node with the activation's forward side.
  void allocate_in_node(std::uint64_t time_ns, StackId stack, ThreadId thread) {
    scenario_.allocate(time_ns, std::to_string(time_ns), 40, kGpu, stack, thread);
    scenario_.in_node(node_, 0);
    Owner& owner = attribution_.blocks.emplace_back();
    owner.module = linear_;
    owner.forward_stack = forward_;
  }
  [[nodiscard]] AttributedStore attributed() const { return attribute(scenario_.store(), attribution_); }

  ModelScenario scenario_;
  ThreadId main_;
  ThreadId autograd_;
  StackId forward_;
  AutogradNodeId node_;
  ModulePathId linear_;
  Attribution attribution_;
};

TEST_F(AttributedStoreTest, CallsOfModulesHaveTheirPaths) {
  const AttributedStore store = attributed();
  EXPECT_THAT(functions_of(store, 0), ElementsAre("<module>", "Net", "Net.forward", "layers.0", "Linear.forward"));
  Symbols symbols(store.definitions);
  const NamedStack stack = name_stack(symbols, store.blocks.stack[0]);
  EXPECT_EQ(stack.module, 3U);
  EXPECT_EQ(stack.call_site, 2U) << "in the project";
}

// A model constructed again: other objects at the same paths have the first model's call sites.
TEST_F(AttributedStoreTest, ObjectsOfOnePathHaveTheSameStacks) {
  const NnModuleId net = scenario_.root("model.Net");
  const NnModuleId linear = scenario_.module(net, "layers.0", "torch.nn.modules.linear.Linear");
  const NnModuleId other = scenario_.module(net, "layers.1", "torch.nn.modules.linear.Linear");
  std::vector<LocationId> frames;  // of the first model's stack
  for (StackId at = forward_; at.valid(); at = scenario_.definitions.stacks[at.value].parent)
    frames.insert(frames.begin(), scenario_.definitions.stacks[at.value].location);
  const auto forward = [&](NnModuleId layer) {
    return scenario_.stack({frames[0], scenario_.call(net), frames[2], scenario_.call(layer), frames[4]});
  };
  const StackId again = forward(linear);
  ASSERT_NE(again, forward_);
  scenario_.allocate(20, "again", 100, kGpu, again, main_);
  scenario_.allocate(30, "other layer", 100, kGpu, forward(other), main_);
  attribution_.blocks.resize(3);
  const AttributedStore store = attributed();
  EXPECT_EQ(store.blocks.stack[1], store.blocks.stack[0]);
  EXPECT_NE(store.blocks.stack[2], store.blocks.stack[0]);
  EXPECT_THAT(functions_of(store, 1), ElementsAre("<module>", "Net", "Net.forward", "layers.0", "Linear.forward"));
  EXPECT_EQ(store.stacks_at_peak.size(), 2U);
}

TEST_F(AttributedStoreTest, BackwardBlocksHaveTheStackOfTheirForwardSide) {
  allocate_in_node(20, {}, autograd_);
  const AttributedStore store = attributed();
  EXPECT_THAT(functions_of(store, 1),
              ElementsAre("(backward)", "<module>", "Net", "Net.forward", "layers.0", "Linear.forward"));
  ASSERT_EQ(store.stacks_at_peak.size(), 2U) << "by the new stacks";
}

TEST_F(AttributedStoreTest, CallerOfTheEngineComesFirst) {
  const StackId engine = scenario_.stack(
      {scenario_.script(12), scenario_.package("torch/autograd/graph.py", "_engine_run_backward", 800)});
  const StackId own = scenario_.push(engine, scenario_.python("Swish.backward", "/w/m.py", 70));
  allocate_in_node(20, engine, main_);
  allocate_in_node(30, own, main_);
  const AttributedStore store = attributed();
  EXPECT_THAT(functions_of(store, 1), ElementsAre("<module>", "_engine_run_backward", "(backward)", "<module>", "Net",
                                                  "Net.forward", "layers.0", "Linear.forward"));
  EXPECT_EQ(functions_of(store, 2).back(), "Swish.backward") << "the node's own Python code says enough";
}

TEST_F(AttributedStoreTest, ANodeWithoutAForwardSideHasItsClass) {
  scenario_.allocate(20, "gradient", 40, kGpu, {}, autograd_);
  scenario_.in_node(scenario_.node("torch::autograd::AccumulateGrad", {}), 0);
  attribution_.blocks.emplace_back();
  const AttributedStore store = attributed();
  EXPECT_THAT(functions_of(store, 1), ElementsAre("(backward)", "AccumulateGrad"));
}

TEST(AttributedStore, RecordingsWithoutDataStayAsTheyAre) {
  Scenario scenario;
  scenario.allocate(10, "a", 100, kGpu, scenario.stack({scenario.python("f", "a.py", 1)}));
  const AttributedStore store = attribute(scenario.store());
  EXPECT_EQ(store.attribution, nullptr);
  EXPECT_EQ(store.definitions.stacks.size(), 1U);
}

}  // namespace
}  // namespace tidemark::testing
