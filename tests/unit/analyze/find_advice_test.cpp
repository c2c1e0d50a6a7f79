// Advice for programs with a fault, and none for the same program without it. Owners of blocks are given here.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/advice/rules.h"
#include "base/units.h"
#include "unit/analyze/phase_spans_of.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::Scenario;

// Builds a recording block by block; sizes in MiB.
class Loop {
 public:
  void allocate(const std::string& block, std::uint64_t mib, Phase phase, Category category,
                const std::string& module = "", AllocationOrigin making = AllocationOrigin::nothing_known) {
    scenario.allocate(++time_ns_, block, mib * kMiB, kGpu);
    scenario.events.back().sequence = sequence;
    scenario.events.back().node_sequence = node_sequence;
    scenario.events.back().stack = stack;
    Owner owner;
    owner.making = making;
    owner.phase = phase;
    owner.forward_stack = forward_stack;
    owner.category = category;
    owner.category_confidence = Confidence::estimated;
    if (!module.empty()) {
      owner.module = path(module);
      if (module == "lm_head") owner.component = attribution.modules[owner.module.value].component = Component::head;
    }
    attribution.blocks.push_back(owner);
  }
  void free(const std::string& block) { scenario.free(++time_ns_, block); }
  void fail() { scenario.out_of_memory(++time_ns_, kMiB, kGpu, stack); }
  /// A stack of calls of these modules, outermost first, each by the next one's number.
  StackId calls(const std::vector<std::uint32_t>& modules) {
    std::vector<LocationId> frames;
    for (const std::uint32_t module : modules) {
      frames.push_back(scenario.python("_call_impl", "torch/nn/modules/module.py", 100 + module));
      scenario.definitions.locations[frames.back().value].nn_module = {module};
    }
    return scenario.stack(frames);
  }
  void begin_step() { scenario.mark(Mark::Kind::point, ++time_ns_, "step"); }
  /// The latest block is the storage of this tensor.
  void is_tensor(ModelTensor::Role role, bool requires_grad, std::uint64_t mib = 0, const char* state = "") {
    attribution.tensors.push_back({{static_cast<std::uint32_t>(attribution.blocks.size() - 1)},
                                   static_cast<std::uint32_t>(scenario.definitions.tensors.size()),
                                   {}});
    tell(role, requires_grad, mib, state);
  }
  /// A tensor of a module's only parameter.
  void tell(ModelTensor::Role role, bool requires_grad, std::uint64_t mib = 0, const char* state = "",
            std::uint32_t module = 0) {
    ModelTensor tensor;
    tensor.role = role;
    tensor.requires_grad = requires_grad;
    tensor.time_ns = time_ns_;
    tensor.module = NnModuleId{module};
    tensor.bytes = tensor.storage_bytes = mib * kMiB;
    tensor.shape = {1024};
    if (*state != 0) tensor.state = scenario.name_id(state);
    scenario.definitions.tensors.push_back(tensor);
  }
  std::map<AdviceKind, Advice> advice() {
    const Store store = scenario.store();
    Symbols symbols(store.definitions);
    attribution.phases = testing::phase_spans_of(store, attribution);
    std::map<AdviceKind, Advice> found;
    for (Advice& one : Adviser(store, symbols, attribution).at_peak(0)) found[one.kind] = one;
    return found;
  }

  Scenario scenario;
  Attribution attribution;
  std::uint64_t sequence = 0;       ///< of the next blocks: the number of the next autograd node
  std::uint64_t node_sequence = 0;  ///< of the next blocks: the autograd node that runs
  StackId stack;                    ///< of the next blocks
  StackId forward_stack;            ///< of the next blocks: where their forward side allocated

 private:
  ModulePathId path(const std::string& name) {
    auto& modules = attribution.modules;
    for (std::uint32_t n = 0; n < modules.size(); ++n) {
      if (modules[n].path == name) return {n};
    }
    modules.push_back({name, "", Component::other});
    return {static_cast<std::uint32_t>(modules.size() - 1)};
  }

  std::uint64_t time_ns_ = 0;
};

// Three steps of two layers, each of which makes 60 and then 40 MiB that are kept for the backward pass. Weights take
// 10, gradients 10, a temporary of the forward pass 30.
//
//   allocated in step 2 and 3          gradients kept          freed by the optimizer
//   before the forward pass                 20                          10
//   after layer 0, layer 1              120, 220                     110, 210
//   with the temporary                     250  the peak                240  the peak
//   in the backward pass, at most          221                          221
Loop training(bool keeps_gradients) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  for (int step = 0; step < 3; ++step) {
    const std::string number = std::to_string(step);
    for (const std::string layer : {"0", "1"}) {
      const std::string module = "model.layers." + layer;
      loop.allocate("x" + layer + number, 60, Phase::forward, Category::activation, module + ".mlp");
      loop.allocate("y" + layer + number, 40, Phase::forward, Category::activation, module);
    }
    loop.allocate("temporary" + number, 30, Phase::forward, Category::temporary);
    loop.free("temporary" + number);
    loop.allocate("seed" + number, 1, Phase::backward, Category::temporary);
    if (step == 0 || !keeps_gradients) loop.allocate("gradient" + number, 10, Phase::backward, Category::gradient);
    for (const std::string block : {"y1", "x1", "y0", "x0"}) loop.free(block + number);
    loop.free("seed" + number);
    loop.allocate("update" + number, 5, Phase::optimizer, Category::temporary);
    loop.free("update" + number);
    if (!keeps_gradients) loop.free("gradient" + number);
  }
  return loop;
}

TEST(FindAdvice, FreesGradientsBeforeTheForwardPass) {
  const auto found = training(true).advice();
  ASSERT_TRUE(found.contains(AdviceKind::gradients_in_forward));
  const Advice& advice = found.at(AdviceKind::gradients_in_forward);
  EXPECT_EQ(advice.avoidable_peak_bytes, 10 * kMiB);
  EXPECT_EQ(advice.peak_bytes, 10 * kMiB);
  EXPECT_EQ(advice.peak_blocks, 1U);
  EXPECT_EQ(advice.confidence, Confidence::estimated);
  EXPECT_FALSE(training(false).advice().contains(AdviceKind::gradients_in_forward));
}

// zero_grad(set_to_none=False): the gradient stays, and a new value is added to it. If it had been freed, the new value
// would be alive from its creation: 40 of weights, and before that x (100) and seed (5), then seed and the new value.
TEST(FindAdvice, AccumulatedGradientsAreAbsentUntilTheAddition) {
  Loop loop;
  loop.allocate("weights", 40, Phase::other, Category::parameter);
  loop.allocate("x0", 10, Phase::forward, Category::activation, "head");
  loop.allocate("seed0", 5, Phase::backward, Category::temporary);
  loop.allocate("gradient", 30, Phase::backward, Category::gradient, "head");
  for (const std::string block : {"x0", "seed0"}) loop.free(block);
  loop.allocate("update", 5, Phase::optimizer, Category::temporary);
  loop.free("update");
  loop.allocate("x1", 100, Phase::forward, Category::activation, "head");
  loop.allocate("seed1", 5, Phase::backward, Category::temporary);  // 175: the peak
  loop.free("x1");
  loop.allocate("new", 30, Phase::backward, Category::temporary, "head");
  loop.free("new");
  loop.free("seed1");
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::gradients_in_forward));
  EXPECT_EQ(found.at(AdviceKind::gradients_in_forward).avoidable_peak_bytes, 30 * kMiB);
}

// zero_grad() between the forward pass, whose end is the peak, and the backward pass.
TEST(FindAdvice, GradientsFreedAfterTheForwardPassAreHeldThroughIt) {
  Loop loop;
  for (const std::string step : {"0", "1"}) {
    loop.allocate("x" + step, 100, Phase::forward, Category::activation);
    if (step == "1") loop.free("gradient0");
    loop.free("x" + step);
    loop.allocate("gradient" + step, 30, Phase::backward, Category::gradient);
    loop.allocate("update" + step, 5, Phase::optimizer, Category::temporary);
    loop.free("update" + step);
  }
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::gradients_in_forward));
  EXPECT_EQ(found.at(AdviceKind::gradients_in_forward).avoidable_peak_bytes, 30 * kMiB);
}

TEST(FindAdvice, GradientsThatAreBeingAccumulatedStay) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  for (const std::string part : {"a", "b"}) {
    loop.allocate("x" + part, 60, Phase::forward, Category::activation);
    if (part == "a") loop.allocate("gradient", 10, Phase::backward, Category::gradient);
    loop.free("x" + part);
    loop.allocate("seed" + part, 1, Phase::backward, Category::temporary);
    loop.free("seed" + part);
  }
  loop.allocate("update", 5, Phase::optimizer, Category::temporary);
  EXPECT_TRUE(loop.advice().empty());
}

// With checkpointing both x are away from the end of their layer to its backward pass. The most is then at the end of
// the second layer: weights 10, gradients 10, y0 40, x1 60, y1 40 = 160 of 250.
TEST(FindAdvice, CheckpointsTheRepeatedLayers) {
  const auto found = training(true).advice();
  ASSERT_TRUE(found.contains(AdviceKind::checkpoint_activations));
  const Advice& advice = found.at(AdviceKind::checkpoint_activations);
  EXPECT_EQ(advice.avoidable_peak_bytes, 90 * kMiB);
  EXPECT_EQ(advice.peak_bytes, 120 * kMiB);
  ASSERT_EQ(advice.modules.size(), 2U);
  EXPECT_EQ(advice.modules[0].path, "model.layers.0");
  EXPECT_EQ(advice.modules[0].bytes, 60 * kMiB);
  EXPECT_EQ(advice.modules[1].path, "model.layers.1");
}

// Batch normalization makes its output first, and then its statistics, in one call: checkpointing the layer alone keeps
// its output.
TEST(FindAdvice, CheckpointingALayerKeepsItsOutput) {
  Loop loop;
  loop.stack = loop.scenario.stack({loop.scenario.python("batch_norm", "torch/nn/functional.py", 1)});
  loop.sequence = 7;
  loop.allocate("output", 60, Phase::forward, Category::activation, "layers.0");
  loop.allocate("mean", 1, Phase::forward, Category::activation, "layers.0");
  loop.allocate("deviation", 1, Phase::forward, Category::activation, "layers.0");
  loop.stack = {};
  loop.allocate("loss", 1, Phase::forward, Category::activation);
  for (const char* block : {"loss", "deviation", "mean", "output"}) loop.free(block);
  loop.allocate("seed", 1, Phase::backward, Category::temporary);
  const auto found = loop.advice();
  EXPECT_FALSE(found.contains(AdviceKind::checkpoint_activations) &&
               found.at(AdviceKind::checkpoint_activations).avoidable_peak_bytes > 2 * kMiB);
}

TEST(FindAdvice, FindsWhatBelongsToFrozenParameters) {
  for (const bool frozen : {true, false}) {
    Loop loop;
    loop.allocate("weights", 50, Phase::other, Category::parameter);
    loop.allocate("gradient", 20, Phase::backward, Category::gradient);
    loop.is_tensor(ModelTensor::Role::gradient, !frozen);
    loop.allocate("state", 30, Phase::optimizer, Category::optimizer_state);
    loop.is_tensor(ModelTensor::Role::optimizer_state, !frozen);
    const auto found = loop.advice();
    EXPECT_EQ(found.size(), frozen ? 2U : 0U);
    if (!frozen) continue;
    EXPECT_EQ(found.at(AdviceKind::frozen_gradients).avoidable_peak_bytes, 20 * kMiB);
    EXPECT_EQ(found.at(AdviceKind::frozen_optimizer_state).avoidable_peak_bytes, 30 * kMiB);
  }
}

// The optimizer made state for a parameter that was frozen later, after a temporary of 20 MiB. Then comes one of 40:
// the peak is 150, and would be 130.
TEST(FindAdvice, FindsWhatBelongsToParametersThatWereFrozenLater) {
  Loop loop;
  loop.allocate("weights", 50, Phase::other, Category::parameter);
  loop.allocate("state", 60, Phase::optimizer, Category::optimizer_state);
  loop.is_tensor(ModelTensor::Role::optimizer_state, true);
  loop.allocate("first", 20, Phase::forward, Category::temporary);
  loop.free("first");
  loop.tell(ModelTensor::Role::parameter, true);
  loop.allocate("second", 40, Phase::forward, Category::temporary);
  loop.tell(ModelTensor::Role::parameter, false);
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::frozen_optimizer_state));
  EXPECT_EQ(found.at(AdviceKind::frozen_optimizer_state).avoidable_peak_bytes, 20 * kMiB);
  EXPECT_FALSE(found.contains(AdviceKind::frozen_gradients));
}

// A parameter of 10 MiB in 16 bits: moments in 32 bits have 20, of which 10 are needed, and a third one is not.
TEST(FindAdvice, FindsOptimizerStateBeyondTwoTensorsLikeTheParameter) {
  for (const std::uint64_t mib : {10U, 20U}) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    loop.is_tensor(ModelTensor::Role::parameter, true, 10);
    for (const char* state : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
      if (mib == 10 && state == std::string("max_exp_avg_sq")) break;
      loop.allocate(state, mib, Phase::optimizer, Category::optimizer_state);
      loop.is_tensor(ModelTensor::Role::optimizer_state, true, mib, state);
    }
    const auto found = loop.advice();
    ASSERT_EQ(found.contains(AdviceKind::large_optimizer_state), mib == 20);
    if (mib == 20) {
      EXPECT_EQ(found.at(AdviceKind::large_optimizer_state).avoidable_peak_bytes, (10 + 10 + 20) * kMiB);
    }
  }
}

// Logits of 100 MiB in 16 bits, their copy in 32 bits (200), its log-softmax (200) and the gradient (200). At the peak
// all of them: weights 60 + 700. Without them: weights and the activation of a layer, which has the logits' size by
// chance.
TEST(FindAdvice, FindsCopiesOfLogits) {
  Loop loop;
  loop.allocate("weights", 60, Phase::other, Category::parameter);
  loop.allocate("x", 100, Phase::forward, Category::activation, "model.layers.0");
  loop.free("x");
  loop.allocate("logits", 100, Phase::forward, Category::activation, "lm_head");
  loop.allocate("float", 200, Phase::forward, Category::activation);
  loop.allocate("log_softmax", 200, Phase::forward, Category::activation);
  loop.allocate("gradient of logits", 200, Phase::backward, Category::temporary);
  const auto found = loop.advice();
  ASSERT_EQ(found.size(), 1U);
  const Advice& advice = found.at(AdviceKind::logits_upcast);
  EXPECT_EQ(advice.avoidable_peak_bytes, 600 * kMiB);
  EXPECT_EQ(advice.peak_bytes, 700 * kMiB);
  EXPECT_EQ(advice.peak_blocks, 4U);
}

// Logits of 100 MiB and their log-softmax in a step of training, then three logits that an evaluation collects without
// a loss: only the first two count, at the peak of 60 + 200 + 300.
TEST(FindAdvice, LeavesOutLogitsWithoutALoss) {
  Loop loop;
  loop.allocate("weights", 60, Phase::other, Category::parameter);
  loop.allocate("logits", 100, Phase::forward, Category::activation, "lm_head");
  loop.allocate("log_softmax", 100, Phase::forward, Category::activation);
  for (const char* name : {"first", "second", "third"}) {
    loop.allocate(name, 100, Phase::forward, Category::activation, "lm_head");
  }
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::logits));
  EXPECT_EQ(found.at(AdviceKind::logits).avoidable_peak_bytes, 200 * kMiB);
  EXPECT_EQ(found.at(AdviceKind::logits).peak_blocks, 2U);
}

// Allocated by C++ code that DistributedDataParallel calls; the gradients are in separate blocks.
TEST(FindAdvice, FindsGradientBucketsBesideGradients) {
  for (const bool view : {false, true}) {
    Loop loop;
    loop.allocate("weights", 40, Phase::other, Category::parameter);
    loop.allocate("bucket", 20, Phase::forward, view ? Category::gradient : Category::copy, "",
                  AllocationOrigin::gradient_bucket);
    if (!view) loop.allocate("gradient", 19, Phase::backward, Category::gradient);
    const auto found = loop.advice();
    EXPECT_EQ(found.size(), view ? 0U : 1U);
    if (view) continue;
    EXPECT_EQ(found.at(AdviceKind::gradient_buckets).avoidable_peak_bytes, 19 * kMiB);
  }
}

TEST(FindAdvice, FindsCopiesOfCheckpoints) {
  Loop loop;
  loop.allocate("weights", 40, Phase::other, Category::parameter);
  loop.allocate("saved", 40, Phase::other, Category::copy, "", AllocationOrigin::copy);
  loop.allocate("other copy", 20, Phase::other, Category::copy);
  const auto found = loop.advice();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.at(AdviceKind::checkpoint_copies).avoidable_peak_bytes, 40 * kMiB);
}

TEST(FindAdvice, DistinguishesModelCopiesFromLoadedTensors) {
  Loop loop;
  loop.allocate("weights", 40, Phase::other, Category::parameter);
  loop.allocate("loaded", 30, Phase::other, Category::copy, "", AllocationOrigin::loaded_copy);
  loop.allocate("average", 20, Phase::other, Category::copy, "", AllocationOrigin::model_copy);
  const auto found = loop.advice();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.at(AdviceKind::loaded_checkpoint).avoidable_peak_bytes, 30 * kMiB);
  EXPECT_EQ(found.at(AdviceKind::model_copies).avoidable_peak_bytes, 20 * kMiB);
}

// Six training steps: a model's hidden tensor of 10 MiB and its result of 20, which a variable holds until the next
// one. After each second step an evaluation without a graph, whose result of 50 another variable holds. The peak is in
// an evaluation: 20 + 50 + 10 + 50; without the variables it is 10 + 50.
TEST(FindAdvice, FindsResultsThatVariablesHold) {
  for (const bool held : {true, false}) {
    Loop loop;
    const StackId trains = loop.calls({1});
    const StackId evaluates = loop.calls({2});
    const StackId reads = loop.scenario.stack({loop.scenario.python("main", "train.py", 9)});
    const auto call = [&](const std::string& name, std::uint64_t mib, StackId stack, std::uint64_t nodes, int n) {
      const std::string result = name + std::to_string(n);
      loop.stack = loop.scenario.stack({loop.scenario.python("hidden", "model.py", stack.value)});
      loop.scenario.definitions.locations.back().nn_module = {stack == trains ? 1U : 2U};
      loop.allocate("hidden", 10, Phase::forward, Category::activation, "model");
      loop.sequence += nodes;
      loop.stack = stack;
      loop.allocate(result, mib, Phase::forward, Category::activation, "model");
      loop.sequence += nodes;
      loop.stack = reads;
      loop.allocate("read", 1, Phase::forward, Category::temporary);
      loop.free("read");
      loop.free("hidden");
      const std::string before = name + std::to_string(n - 1);
      if (held && n > 0) loop.free(before);
    };
    for (int step = 0; step < 6; ++step) {
      loop.begin_step();
      call("logits", 20, trains, 1, step);
      loop.stack = reads;
      loop.allocate("seed", 1, Phase::backward, Category::temporary);
      loop.free("seed");
      loop.begin_step();
      if (!held) loop.free("logits" + std::to_string(step));
      if (step % 2 == 0) continue;
      call("scores", 50, evaluates, 0, step / 2);
      if (!held) loop.free("scores" + std::to_string(step / 2));
    }
    const auto found = loop.advice();
    ASSERT_EQ(found.count(AdviceKind::held_results), held ? 1U : 0U);
    if (!held) continue;
    EXPECT_EQ(found.at(AdviceKind::held_results).avoidable_peak_bytes, 70 * kMiB);
  }
}

// 20 results of 2 MiB, each made by a call with 3 MiB of temporary memory. All but the last are away at the peak.
TEST(FindAdvice, FindsResultsThatAreCollected) {
  enum class Course : std::uint8_t { collected, read_one_by_one, with_graphs };
  for (const Course kind : {Course::collected, Course::read_one_by_one, Course::with_graphs}) {
    Loop loop;
    loop.sequence = 7;
    loop.stack = loop.scenario.stack({loop.scenario.python("evaluate", "eval.py", 9)});
    const StackId work = loop.scenario.stack({loop.scenario.python("forward", "model.py", 3)});
    for (int n = 0; n < 20; ++n) {
      loop.allocate("result " + std::to_string(n), 2, Phase::forward, Category::activation);
      const StackId results = std::exchange(loop.stack, work);
      loop.allocate("work", 3, Phase::forward, Category::temporary);
      loop.free("work");
      loop.stack = results;
      if (kind == Course::with_graphs) loop.sequence += 2;
    }
    for (int n = 0; n < 20; ++n) {
      loop.free("result " + std::to_string(n));
      if (kind != Course::read_one_by_one) continue;
      loop.allocate("read", 1, Phase::other, Category::temporary);
      loop.free("read");
    }
    const auto found = loop.advice();
    ASSERT_EQ(found.count(AdviceKind::collected_results), kind == Course::collected ? 1U : 0U);
    if (kind != Course::collected) continue;
    EXPECT_EQ(found.at(AdviceKind::collected_results).avoidable_peak_bytes, 19 * 2 * kMiB);
    EXPECT_EQ(found.at(AdviceKind::collected_results).peak_blocks, 19U);
  }
}

// Three passes of a loop: inputs of 4 MiB, activations of 20 and 10, a loss of 1, then one backward pass. Weights and
// gradients take 10 each, the seed 1. The peak is 10 + 3 * 35 + 1 + 10; with a backward pass after each it is
// 10 + 35 + 1 + 10.
TEST(FindAdvice, FindsForwardPassesThatWaitForOneBackwardPass) {
  enum class Course : std::uint8_t { waiting, one_by_one, one_input };
  for (const Course kind : {Course::waiting, Course::one_by_one, Course::one_input}) {
    Loop loop;
    const StackId loads = loop.scenario.stack({loop.scenario.python("train", "train.py", 3)});
    const StackId calls = loop.scenario.stack({loop.scenario.python("train", "train.py", 4)});
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    const auto go_back = [&](int first, int end) {
      loop.allocate("seed", 1, Phase::backward, Category::temporary);
      if (first == 0) loop.allocate("gradient", 10, Phase::backward, Category::gradient);
      for (int n = end; n-- > first;) {
        for (const std::string block : {"loss", "y", "x", "input"}) {
          if (block != "input" || n == 0 || kind != Course::one_input) loop.free(block + std::to_string(n));
        }
      }
      loop.free("seed");
    };
    for (int n = 0; n < 3; ++n) {
      loop.stack = loads;
      if (n == 0 || kind != Course::one_input) {
        loop.allocate("input" + std::to_string(n), 4, n == 0 ? Phase::other : Phase::forward, Category::input);
      }
      loop.stack = calls;
      for (const std::string block : {"x", "y", "loss"}) {
        ++loop.sequence;
        loop.allocate(block + std::to_string(n),
                      block == "x"   ? 20
                      : block == "y" ? 10
                                     : 1,
                      Phase::forward, Category::activation, block == "loss" ? "" : block);
      }
      if (kind == Course::one_by_one) go_back(n, n + 1);
    }
    if (kind != Course::one_by_one) go_back(0, 3);
    loop.allocate("update", 5, Phase::optimizer, Category::temporary);
    const auto found = loop.advice();
    ASSERT_EQ(found.count(AdviceKind::forwards_before_backward), kind == Course::waiting ? 1U : 0U);
    if (kind != Course::waiting) continue;
    const Advice& advice = found.at(AdviceKind::forwards_before_backward);
    EXPECT_EQ(advice.avoidable_peak_bytes, 70 * kMiB);
    EXPECT_EQ(advice.peak_bytes, 70 * kMiB);
    EXPECT_EQ(advice.added_bytes, 0U);
  }
}

// Queries by keys: 64 MiB of scores, 64 of softmax, a mask of 16, and in the backward pass 64 for the product with the
// values and 64 for softmax. Weights take 10, the queries and keys 8, which stay.
TEST(FindAdvice, FindsMatricesOfAttention) {
  for (const std::string softmax : {"SoftmaxBackward0", "LogSoftmaxBackward0"}) {
    for (const std::string product : {"BmmBackward0", "AddmmBackward0"}) {
      Loop loop;
      const StackId forward = loop.scenario.stack({loop.scenario.python("forward", "attention.py", 3)});
      for (const std::string& node : {softmax, product}) {
        loop.scenario.definitions.autograd_nodes.push_back(
            {loop.scenario.name_id("torch::autograd::generated::" + node), ThreadId{0}});
      }
      const auto in_node = [&](std::uint32_t node) {
        loop.scenario.events.back().node = AutogradNodeId{node};
        loop.attribution.blocks.back().forward_stack = forward;
      };
      loop.allocate("weights", 10, Phase::other, Category::parameter);
      loop.stack = forward;
      loop.allocate("queries", 8, Phase::forward, Category::activation, "attention");
      loop.allocate("scores", 64, Phase::forward, Category::temporary, "attention");
      loop.allocate("weights of values", 64, Phase::forward, Category::activation, "attention");
      loop.allocate("mask", 16, Phase::forward, Category::activation, "attention");
      loop.stack = StackId{};
      loop.free("scores");
      loop.allocate("of weights", 64, Phase::backward, Category::temporary, "attention");
      in_node(1);
      loop.allocate("of scores", 64, Phase::backward, Category::temporary, "attention");
      in_node(0);
      const auto found = loop.advice();
      const bool is_attention = softmax == "SoftmaxBackward0" && product == "BmmBackward0";
      ASSERT_EQ(found.count(AdviceKind::attention_matrices), is_attention ? 1U : 0U);
      if (!is_attention) continue;
      EXPECT_EQ(found.at(AdviceKind::attention_matrices).avoidable_peak_bytes, (3 * 64 + 16) * kMiB);
      EXPECT_EQ(found.at(AdviceKind::attention_matrices).peak_blocks, 4U);
    }
  }
}

// In the first forward pass, when memory runs out before any backward pass.
TEST(FindAdvice, FindsMatricesOfAttentionByTheFunctionThatMakesThem) {
  for (const Component component : {Component::attention, Component::head}) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    loop.stack = loop.scenario.stack({loop.scenario.python("softmax", "torch/nn/functional.py", 2140)});
    loop.allocate("weights of values", 64, Phase::forward, Category::activation, "attention");
    loop.attribution.blocks.back().component = component;
    EXPECT_EQ(loop.advice().count(AdviceKind::attention_matrices), component == Component::attention ? 1U : 0U);
  }
}

// Two layers of 20 MiB, gathered in the forward pass; the outermost module's parameters stay. At the peak (weights 10,
// gathered 30 + 2 * 20, x 50) neither layer is in use.
TEST(FindAdvice, FindsGatheredParametersHeldUntilTheBackwardPass) {
  for (const bool reshards : {false, true}) {
    Loop loop;
    const AllocationOrigin made = AllocationOrigin::gathered_parameter;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    loop.allocate("all", 30, Phase::forward, Category::copy, "Model", made);
    for (const std::string layer : {"layers.0", "layers.1"}) {
      loop.allocate(layer, 20, Phase::forward, Category::copy, layer, made);
      loop.allocate(layer + " temporary", 1, Phase::forward, Category::temporary, layer + ".mlp");
      loop.free(layer + " temporary");
      if (reshards) loop.free(layer);
    }
    loop.allocate("x", 50, Phase::forward, Category::activation, "head");
    loop.allocate("seed", 1, Phase::backward, Category::temporary, "head");
    loop.free("x");
    for (const std::string layer : {"layers.1", "layers.0"}) {
      if (reshards) loop.allocate(layer, 20, Phase::backward, Category::copy, layer, made);
      loop.allocate(layer + " gradient", 5, Phase::backward, Category::temporary, layer + ".mlp");
      loop.free(layer + " gradient");
      loop.free(layer);
    }
    const auto found = loop.advice();
    ASSERT_EQ(found.size(), reshards ? 0U : 1U);
    if (reshards) continue;
    EXPECT_EQ(found.at(AdviceKind::gathered_parameters).avoidable_peak_bytes, 40 * kMiB);
    EXPECT_EQ(found.at(AdviceKind::gathered_parameters).modules.size(), 2U);
  }
}

// The third layer's first request fails: x of the first two (60 each) would have been absent.
TEST(FindAdvice, ReportsBytesHeldAtAFailedRequest) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  for (const std::string layer : {"0", "1", "2"}) {
    loop.allocate("x" + layer, 60, Phase::forward, Category::activation, "layers." + layer);
    if (layer != "2") loop.allocate("y" + layer, 40, Phase::forward, Category::activation, "layers." + layer);
  }
  loop.scenario.out_of_memory(1000, 40 * kMiB, kGpu);
  const Store store = loop.scenario.store();
  Symbols symbols(store.definitions);
  const std::vector<Advice> found = Adviser(store, symbols, loop.attribution).at_failure(store.out_of_memory.at(0));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, AdviceKind::checkpoint_activations);
  EXPECT_EQ(found[0].avoidable_peak_bytes, 120 * kMiB);
  EXPECT_EQ(found[0].peak_blocks, 2U);
}

// Two layers, each of which allocates 60 and then 40 MiB, and a loss. Weights take 10.
void call_two_layers(Loop& loop, const std::string& call, Phase phase, bool makes_nodes) {
  for (const std::string layer : {"0", "1"}) {
    const std::string module = "layers." + layer;
    loop.sequence += makes_nodes ? 1 : 0;
    loop.allocate("x" + layer + call, 60, phase, Category::temporary, module + ".mlp");
    loop.sequence += makes_nodes ? 1 : 0;
    loop.allocate("y" + layer + call, 40, phase, Category::temporary, module);
  }
}

void free_two_layers(Loop& loop, const std::string& call) {
  for (const std::string block : {"y1", "x1", "y0", "x0"}) loop.free(block + call);
}

// The graph holds 200 MiB beside the loss. Without it, x0 is freed when layer 0 is over, y0 when layer 1 is: 40 + 60 +
// 40 at most.
TEST(FindAdvice, FindsGraphsThatNoBackwardPassGoesThrough) {
  const auto run = [](bool makes_nodes, bool goes_back) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    for (const std::string call : {"a", "b"}) {
      call_two_layers(loop, call, Phase::forward, makes_nodes);
      if (goes_back) loop.allocate("seed" + call, 1, Phase::backward, Category::temporary);
      if (!goes_back) loop.allocate("loss" + call, 1, Phase::other, Category::temporary);
      free_two_layers(loop, call);
      loop.free((goes_back ? "seed" : "loss") + call);
    }
    return loop.advice();
  };
  const auto found = run(true, false);
  ASSERT_TRUE(found.contains(AdviceKind::inference_with_autograd));
  EXPECT_EQ(found.at(AdviceKind::inference_with_autograd).avoidable_peak_bytes, (201 - 140) * kMiB);
  EXPECT_FALSE(run(false, false).contains(AdviceKind::inference_with_autograd)) << "torch.no_grad()";
  EXPECT_FALSE(run(true, true).contains(AdviceKind::inference_with_autograd));
}

// losses.append(loss) after backward(retain_graph=True): the graphs are freed when the program ends, outside any
// backward pass, but one went through each.
TEST(FindAdvice, AGraphThatIsKeptAfterItsBackwardPassIsUsed) {
  const auto finds_it = [](bool goes_back) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    for (const std::string call : {"a", "b", "c"}) {
      const std::uint64_t first = loop.sequence + 1;
      call_two_layers(loop, call, Phase::forward, true);
      loop.node_sequence = goes_back ? first + 1 : 0;
      loop.allocate("seed" + call, 1, goes_back ? Phase::backward : Phase::other, Category::temporary);
      loop.node_sequence = 0;
      loop.free("seed" + call);
      loop.allocate("update" + call, 1, Phase::optimizer, Category::temporary);
      loop.free("update" + call);
    }
    for (const std::string call : {"a", "b", "c"}) free_two_layers(loop, call);
    return loop.advice().contains(AdviceKind::inference_with_autograd);
  };
  EXPECT_TRUE(finds_it(false));
  EXPECT_FALSE(finds_it(true));
}

// One model, which has a teacher (modules 1 to 3) and a student (4 to 6), each of 100 MiB. The backward pass goes back
// through the student alone.
TEST(FindAdvice, FindsATeacherInTheModelWhoseGraphIsNotUsed) {
  const auto run = [](bool goes_back) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    for (const std::string step : {"a", "b"}) {
      const auto call = [&](const std::string& name, const std::string& path, std::uint32_t first) {
        for (const std::uint32_t part : {1U, 2U}) {
          loop.stack = loop.calls({0, first, first + part});
          ++loop.sequence;
          loop.allocate(name + std::to_string(part) + step, 50, Phase::forward, Category::activation,
                        path + "." + std::to_string(part));
        }
      };
      call("teacher", "teacher", 1);
      call("student", "student", 4);
      loop.stack = loop.calls({0});
      ++loop.sequence;
      loop.allocate("loss" + step, 1, Phase::forward, Category::activation, "model");
      if (!goes_back) loop.free("teacher1" + step);
      if (!goes_back) loop.free("teacher2" + step);
      loop.stack = {};
      for (const std::uint32_t module : {6U, 5U, 0U}) {
        loop.forward_stack = loop.calls(module == 0 ? std::vector<std::uint32_t>{0} : std::vector{0U, 4U, module});
        loop.allocate("gradient" + std::to_string(module) + step, 1, Phase::backward, Category::gradient);
      }
      for (const std::string block : {"loss", "student2", "student1"}) loop.free(block + step);
      if (goes_back) loop.free("teacher2" + step);
      if (goes_back) loop.free("teacher1" + step);
      loop.forward_stack = {};
      loop.allocate("update" + step, 1, Phase::optimizer, Category::temporary);
      for (const std::string block : {"gradient6", "gradient5", "gradient0", "update"}) loop.free(block + step);
    }
    return loop.advice();
  };
  const auto found = run(false);
  ASSERT_TRUE(found.contains(AdviceKind::inference_with_autograd));
  // teacher1 is away when teacher2 is over; the model's code may have the teacher's result.
  EXPECT_EQ(found.at(AdviceKind::inference_with_autograd).avoidable_peak_bytes, 50 * kMiB);
  EXPECT_FALSE(run(true).contains(AdviceKind::inference_with_autograd));
}

// A generator (modules 0 and 1) of 100 MiB and a discriminator (2 and 3) that an optimizer trains: the backward pass
// goes back through both.
TEST(FindAdvice, FindsGradientsThatNoOptimizerUses) {
  const auto run = [](bool trains_generator, bool generator_first) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    for (const std::string step : {"a", "b"}) {
      const auto call = [&](const std::string& name, std::uint32_t module) {
        for (const std::uint32_t part : {0U, 1U}) {
          loop.stack = part == 0 ? loop.calls({module}) : loop.calls({module, module + 1});
          ++loop.sequence;
          loop.allocate(name + std::to_string(part) + step, 50, Phase::forward, Category::activation,
                        name + "." + std::to_string(part));
        }
      };
      if (generator_first) call("generator", 0);
      call("discriminator", 2);
      if (!generator_first) call("generator", 0);
      loop.stack = {};
      for (const std::uint32_t module : {2U, 0U}) {
        loop.forward_stack = module == 0 ? loop.calls({0, 1}) : loop.calls({2, 3});
        loop.allocate("gradient" + std::to_string(module) + step, 20, Phase::backward, Category::gradient);
      }
      for (const std::string block : {"discriminator1", "discriminator0", "generator1", "generator0"}) {
        loop.free(block + step);
      }
      loop.forward_stack = {};
      loop.allocate("update" + step, 1, Phase::optimizer, Category::temporary);
      loop.tell(ModelTensor::Role::gradient, true, 20, "", 3);
      if (trains_generator) loop.tell(ModelTensor::Role::gradient, true, 20, "", 1);
      for (const std::string block : {"gradient2", "gradient0", "update"}) loop.free(block + step);
    }
    return loop.advice();
  };
  const auto found = run(false, true);
  ASSERT_TRUE(found.contains(AdviceKind::unused_gradients));
  // generator0, and its gradient; generator1 is the discriminator's input.
  EXPECT_EQ(found.at(AdviceKind::unused_gradients).avoidable_peak_bytes, (50 + 20) * kMiB);
  EXPECT_FALSE(run(true, true).contains(AdviceKind::unused_gradients));
  EXPECT_FALSE(run(false, false).contains(AdviceKind::unused_gradients)) << "the way to what is trained";
}

// Results with their graphs are kept until memory runs out. One backward pass went back through one call.
TEST(FindAdvice, FindsGraphsThatAreKeptUntilMemoryRunsOut) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  call_two_layers(loop, "t", Phase::forward, true);
  loop.allocate("seed", 1, Phase::backward, Category::temporary);
  free_two_layers(loop, "t");
  for (const std::string call : {"a", "b", "c"}) call_two_layers(loop, call, Phase::forward, true);
  loop.fail();
  for (const std::string call : {"a", "b", "c"}) free_two_layers(loop, call);
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::inference_with_autograd));
  // Of each call y1 stays, its result; and in the last one nothing is freed that its own code may need: 40 + 60 + 40.
  EXPECT_EQ(found.at(AdviceKind::inference_with_autograd).avoidable_peak_bytes, (600 - 40 - 40 - 140) * kMiB);
}

// Memory runs out in the second layer of a forward pass that would have had a backward pass.
TEST(FindAdvice, AForwardPassThatRanOutOfMemoryIsNoInference) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  for (const std::string step : {"0", "1"}) {
    call_two_layers(loop, step, Phase::forward, true);
    if (step == "1") loop.fail();
    if (step == "0") loop.allocate("seed", 1, Phase::backward, Category::temporary);
    free_two_layers(loop, step);
  }
  EXPECT_FALSE(loop.advice().contains(AdviceKind::inference_with_autograd));
}

// Both layers are there before the backward pass: x0 is away from when layer 1 is recomputed until its own backward.
TEST(FindAdvice, FindsACheckpointOfSeveralLayers) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  loop.allocate("input", 5, Phase::forward, Category::activation, "layers.0");
  for (const std::string layer : {"0", "1"}) {
    loop.allocate("x" + layer, 60, Phase::recomputation, Category::activation, "layers." + layer + ".mlp");
    loop.allocate("y" + layer, 40, Phase::recomputation, Category::activation, "layers." + layer);
  }
  loop.allocate("seed", 1, Phase::backward, Category::temporary);
  free_two_layers(loop, "");
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::checkpoint_each_layer));
  EXPECT_EQ(found.at(AdviceKind::checkpoint_each_layer).avoidable_peak_bytes, 60 * kMiB);
}

TEST(FindAdvice, ACheckpointForEachLayerIsFine) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  loop.allocate("input", 5, Phase::forward, Category::activation, "layers.0");
  for (const std::string layer : {"1", "0"}) {
    loop.allocate("x", 60, Phase::recomputation, Category::activation, "layers." + layer + ".mlp");
    loop.allocate("y", 40, Phase::recomputation, Category::activation, "layers." + layer);
    loop.allocate("gradient", 1, Phase::backward, Category::temporary);
    for (const std::string block : {"y", "x", "gradient"}) loop.free(block);
  }
  EXPECT_FALSE(loop.advice().contains(AdviceKind::checkpoint_each_layer));
}

// A step for all parameters at once makes 30, 20 and 20 MiB; fused none, and one at a time the largest.
TEST(FindAdvice, FindsTemporaryTensorsOfAnOptimizerStep) {
  const auto saving = [](AllocationOrigin origin) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    for (const std::string step : {"0", "1"}) {
      for (const std::uint64_t mib : {20U, 30U, 20U}) {
        loop.allocate(std::to_string(mib) + (mib == 30 ? "" : std::to_string(loop.attribution.blocks.size())) + step,
                      mib, Phase::optimizer, Category::temporary, "", origin);
      }
      const std::size_t count = loop.attribution.blocks.size();
      loop.free("20" + std::to_string(count - 3) + step);
      loop.free("30" + step);
      loop.free("20" + std::to_string(count - 1) + step);
    }
    auto found = loop.advice();
    return found.contains(AdviceKind::optimizer_temporaries)
               ? found[AdviceKind::optimizer_temporaries].avoidable_peak_bytes / kMiB
               : 0;
  };
  EXPECT_EQ(saving(AllocationOrigin::fusable_step), 70U);
  EXPECT_EQ(saving(AllocationOrigin::foreach_step), 40U);
  EXPECT_EQ(saving(AllocationOrigin::nothing_known), 0U);
}

// Three epochs of seven steps, each of which keeps 20 MiB until the epoch ends: at most 140 MiB instead of 20.
TEST(FindAdvice, FindsWhatIsKeptOverSteps) {
  const auto run = [](bool is_of_model) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    loop.stack = loop.scenario.stack({loop.scenario.python("train", "/home/me/train.py", 7)});
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int step = 0; step < 7; ++step) {
        loop.begin_step();
        loop.allocate("output" + std::to_string(step), 20, Phase::forward, Category::activation, "head");
        if (is_of_model) loop.is_tensor(ModelTensor::Role::buffer, false);
      }
      for (int step = 0; step < 7; ++step) loop.free("output" + std::to_string(step));
    }
    return loop.advice();
  };
  const auto found = run(false);
  ASSERT_TRUE(found.contains(AdviceKind::kept_over_steps));
  EXPECT_EQ(found.at(AdviceKind::kept_over_steps).avoidable_peak_bytes, 120 * kMiB);
  EXPECT_FALSE(run(true).contains(AdviceKind::kept_over_steps));
}

// Steps that begin at the optimizer: the first output is older than the first step. All epochs have the same peak.
TEST(FindAdvice, FindsWhatIsKeptFromBeforeTheFirstStep) {
  Loop loop;
  loop.allocate("weights", 10, Phase::other, Category::parameter);
  loop.stack = loop.scenario.stack({loop.scenario.python("train", "/home/me/train.py", 7)});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 0; step < 7; ++step) {
      loop.allocate("output" + std::to_string(step), 20, Phase::forward, Category::activation, "head");
      loop.begin_step();
    }
    for (int step = 0; step < 7; ++step) loop.free("output" + std::to_string(step));
  }
  const auto found = loop.advice();
  ASSERT_TRUE(found.contains(AdviceKind::kept_over_steps));
  EXPECT_EQ(found.at(AdviceKind::kept_over_steps).avoidable_peak_bytes, 120 * kMiB);
}

// An epoch of four steps; the last one also frees its own outputs.
TEST(FindAdvice, FindsWhatIsKeptOverFewSteps) {
  const auto run = [](int steps) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    loop.stack = loop.scenario.stack({loop.scenario.python("train", "/home/me/train.py", 7)});
    for (int epoch = 0; epoch < 4; ++epoch) {
      for (int step = 0; step < steps; ++step) {
        loop.begin_step();
        loop.allocate("output" + std::to_string(step), 20, Phase::forward, Category::activation, "head");
      }
      for (int step = 0; step < steps; ++step) loop.free("output" + std::to_string(step));
    }
    return loop.advice();
  };
  const auto found = run(4);
  ASSERT_TRUE(found.contains(AdviceKind::kept_over_steps));
  EXPECT_EQ(found.at(AdviceKind::kept_over_steps).avoidable_peak_bytes, 60 * kMiB);
  EXPECT_FALSE(run(3).contains(AdviceKind::kept_over_steps));
}

// The first request fails with 100 MiB allocated by its call; they are alive when the second one fails. Blocks
// allocated before the call, at another line, do not belong to it.
TEST(FindAdvice, FindsWhatTheExceptionOfAFailedCallKeeps) {
  const auto run = [](bool keeps, bool gets_memory) {
    Loop loop;
    const auto at_line = [&](std::uint32_t line) {
      loop.stack = loop.scenario.stack(
          {loop.scenario.python("main", "train.py", line), loop.scenario.python("forward", "train.py", 5)});
    };
    at_line(10);
    loop.allocate("kept", 25, Phase::forward, Category::activation, "layers.0");
    at_line(16);
    loop.allocate("x", 60, Phase::forward, Category::activation, "layers.0");
    loop.allocate("y", 40, Phase::forward, Category::activation, "layers.1");
    loop.fail();
    if (!keeps) loop.free("y");
    if (!keeps) loop.free("x");
    at_line(20);
    if (gets_memory) loop.allocate("half", 30, Phase::forward, Category::activation, "layers.0");
    loop.fail();
    const Store store = loop.scenario.store();
    Symbols symbols(store.definitions);
    loop.attribution.phases = testing::phase_spans_of(store, loop.attribution);
    Adviser adviser(store, symbols, loop.attribution);
    std::vector<std::uint64_t> held;
    for (const OutOfMemory& failure : store.out_of_memory) {
      held.push_back(0);
      for (const Advice& advice : adviser.at_failure(failure)) {
        if (advice.kind == AdviceKind::failed_call) held.back() += advice.peak_bytes / kMiB;
      }
    }
    return held;
  };
  EXPECT_EQ(run(true, true), (std::vector<std::uint64_t>{0, 100}));
  EXPECT_EQ(run(true, false), (std::vector<std::uint64_t>{0, 100})) << "its first request fails";
  EXPECT_EQ(run(false, true), (std::vector<std::uint64_t>{0, 0}));
}

// 10, 20, ... 60 MiB: each is made while the one before is there, so that 110 MiB are the peak beside the weights.
TEST(FindAdvice, FindsATensorThatIsConcatenatedAgainAndAgain) {
  const auto run = [](bool replaces) {
    Loop loop;
    loop.allocate("weights", 10, Phase::other, Category::parameter);
    loop.stack = loop.scenario.stack({loop.scenario.python("evaluate", "train.py", 23)});
    for (int part = 1; part <= 6; ++part) {
      loop.allocate(std::to_string(part), std::uint64_t(part) * 10, Phase::other, Category::unknown);
      if (replaces && part > 1) loop.free(std::to_string(part - 1));
      if (!replaces) loop.free(std::to_string(part));
    }
    return loop.advice();
  };
  const auto found = run(true);
  ASSERT_TRUE(found.contains(AdviceKind::repeated_concatenation));
  EXPECT_EQ(found.at(AdviceKind::repeated_concatenation).avoidable_peak_bytes, 110 * kMiB);
  EXPECT_FALSE(run(false).contains(AdviceKind::repeated_concatenation)) << "batches that grow";
}

TEST(FindAdvice, NamesRepeatedLayers) {
  EXPECT_EQ(advice::layer_of("model.layers.3.mlp.experts.1.w1"), "model.layers.3");
  EXPECT_EQ(advice::layer_of("layer1.0.conv1"), "layer1.0");
  EXPECT_EQ(advice::layer_of("0"), "0");
  EXPECT_EQ(advice::layer_of("model.norm"), "");
  EXPECT_EQ(advice::layer_of(""), "");
}

}  // namespace
}  // namespace tidemark
