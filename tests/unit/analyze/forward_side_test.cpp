// The module and the stack of allocations by autograd nodes: those of their forward side.
#include <gtest/gtest.h>

#include <limits>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "unit/analyze/model_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::ModelScenario;
using testing::module_of;

class BackwardRun : public ModelScenario {
 public:
  BackwardRun() {
    main = thread(1, "python");
    autograd = thread(2, "pt_autograd_0");
    model = root("Net");
    up = stack({script(10), call(module(model, "mlp.up", "torch.nn.modules.linear.Linear"))});
    down = stack({script(10), call(module(model, "mlp.down", "torch.nn.modules.linear.Linear"))});
    loss = stack({script(11)});
  }
  void forward(const std::string& block, StackId stack, std::uint64_t next_node) {
    allocate(++now_, block, 1024, kGpu, stack, main);
    at_sequence(next_node);
  }
  void backward(const std::string& type, std::uint64_t sequence, std::uint64_t size = 1024) {
    ++now_;
    allocate(now_, type + std::to_string(now_), size, kGpu, {}, autograd);
    in_node(node("torch::autograd::generated::" + type, main), sequence);
  }
  [[nodiscard]] Owner last(const Attribution& attribution) const { return attribution.blocks.back(); }

  ThreadId main, autograd;
  NnModuleId model;
  StackId up, down, loss;

 private:
  std::uint64_t now_ = 0;
};

// Node 5 is made before its output is allocated, node 6 after; node 7 is a view of that.
TEST(ForwardSideTest, ByTheNumbersOfNodes) {
  BackwardRun run;
  run.forward("input", run.loss, 5);
  run.forward("up", run.up, 6);
  run.forward("down", run.down, 6);
  run.forward("after the view", run.loss, 9);
  run.backward("ViewBackward0", 7);
  run.backward("SiluBackward0", 6);
  run.backward("AddmmBackward0", 5);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, attribution.blocks[4]), "mlp.down");
  EXPECT_EQ(module_of(attribution, attribution.blocks[5]), "mlp.down");
  EXPECT_EQ(module_of(attribution, attribution.blocks[6]), "mlp.up");
  EXPECT_EQ(attribution.blocks[6].forward_stack, run.up);
  EXPECT_EQ(attribution.blocks[6].module_confidence, Confidence::estimated);
  EXPECT_EQ(attribution.blocks[6].phase, Phase::backward);
}

// Module.register_full_backward_hook() creates node 2 before it calls "down"; node 3 transposes its weight first.
TEST(ForwardSideTest, HooksOfAModuleAreOfWhatItsCallMakes) {
  BackwardRun run;
  run.forward("up", run.up, 2);
  run.forward("down", run.down, 5);
  const LocationId hook = run.package("torch/utils/hooks.py", "BackwardHook._set_user_hook.<locals>.hook");
  run.allocate(3, "per-sample gradient", 1024, kGpu, run.stack({hook, run.script(20)}), run.autograd);
  run.in_node(run.node("BackwardHookFunctionBackward", run.main), 2);
  run.backward("BackwardHookFunctionBackward", 2);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, attribution.blocks[2]), "mlp.down");
  EXPECT_EQ(module_of(attribution, attribution.blocks[3]), "mlp.up");
}

// The loss is written by hand: it creates nodes, and a backward pass goes through them. The batch creates none.
TEST(ForwardSideTest, CodeThatMakesNodesIsOfTheForwardPass) {
  BackwardRun run;
  run.forward("batch", run.loss, 0);
  run.forward("noise", run.loss, 0);
  run.forward("functional", run.loss, 1);
  run.forward("up", run.up, 2);
  run.forward("loss", run.loss, 3);
  run.backward("MulBackward0", 2);
  const Attribution attribution = attribute_blocks(run.store());
  std::vector<Phase> phases;
  for (const Owner& owner : attribution.blocks) phases.push_back(owner.phase);
  EXPECT_EQ(phases,
            (std::vector{Phase::other, Phase::other, Phase::forward, Phase::forward, Phase::forward, Phase::backward}));
  EXPECT_EQ(attribution.blocks.back().forward_stack, run.loss);
  EXPECT_FALSE(attribution.blocks.back().module.valid());
}

TEST(ForwardSideTest, MemoryRunsOutInALossWrittenByHand) {
  BackwardRun run;
  run.forward("batch", run.loss, 0);
  run.forward("up", run.up, 1);
  run.forward("loss", run.loss, 2);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(attribution.blocks[0].category, Category::input);
  EXPECT_EQ(attribution.blocks[2].phase, Phase::forward);
  EXPECT_EQ(attribution.blocks[2].category, Category::activation);
}

// They have no number, and run right after the node that made the gradient.
TEST(ForwardSideTest, AccumulatedGradientsBelongToTheNodeBefore) {
  BackwardRun run;
  run.forward("up", run.up, 1);
  run.forward("down", run.down, 2);
  run.backward("AddmmBackward0", 1);
  run.backward("AccumulateGrad", std::numeric_limits<std::uint64_t>::max());
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, run.last(attribution)), "mlp.down");
}

// FSDP reduces the gradients of its outermost module at the end of the pass, when no node runs.
TEST(ForwardSideTest, BetweenNodesABackwardPassIsTheWholeModels) {
  BackwardRun run;
  const StackId stack =
      run.stack({run.script(10), run.call(run.model), run.call(run.module(run.model, "fc", "Linear"))});
  run.forward("fc", stack, 1);
  const LocationId hook =
      run.package("torch/distributed/fsdp/_fully_shard/_fsdp_state.py", "FSDPState._root_post_backward_final_callback");
  run.allocate(100, "reduced", 1024, kGpu, run.stack({hook}), run.autograd);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(run.last(attribution).phase, Phase::backward);
  EXPECT_EQ(module_of(attribution, run.last(attribution)), "Net");
}

TEST(ForwardSideTest, OfARequestThatFailed) {
  BackwardRun run;
  run.forward("up", run.up, 1);
  run.forward("down", run.down, 2);
  run.out_of_memory(100, 4096, kGpu);
  run.in_node(run.node("torch::autograd::generated::AddmmBackward0", run.main), 0);
  const Attribution attribution = attribute_blocks(run.store());
  ASSERT_EQ(attribution.out_of_memory.size(), 1U);
  EXPECT_EQ(module_of(attribution, attribution.out_of_memory[0]), "mlp.up");
  EXPECT_EQ(attribution.out_of_memory[0].forward_stack, run.up);
  EXPECT_EQ(attribution.out_of_memory[0].category, Category::unknown);  // no evidence for gradients or intermediate
                                                                        // ones
}

TEST(OwnerGroupsTest, CodeOutsideOfModulesHasTheLineOfTheProgram) {
  BackwardRun run;
  const StackId loss = run.stack({run.script(11), run.package("torch/nn/functional.py", "cross_entropy")});
  run.forward("batch", run.loss, 0);
  run.forward("up", run.up, 1);
  run.forward("loss", loss, 2);
  run.forward("scaled", run.loss, 3);
  run.backward("MulBackward0", 2);
  run.backward("NllLossBackward0", 1);
  run.backward("AddmmBackward0", 0);
  const Store store = run.store();
  const Attribution attribution = attribute_blocks(store);
  for (const OwnerKind kind : {OwnerKind::module, OwnerKind::layer}) {
    const auto groups = OwnerGroups::create(store, attribution, kind);
    ASSERT_TRUE(groups.ok());
    std::vector<std::string> names;
    for (std::size_t block = 0; block < attribution.blocks.size(); ++block) {
      names.push_back(groups->owner(groups->of(block)).name.value_or("-"));
    }
    EXPECT_EQ(names, (std::vector<std::string>{"-", "mlp.up", "(train.py:11: cross_entropy)", "(train.py:11)",
                                               "(train.py:11)", "(train.py:11: cross_entropy)", "mlp.up"}));
  }
}

}  // namespace
}  // namespace tidemark
