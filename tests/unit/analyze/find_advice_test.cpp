// Advice for programs that have a fault, and none for the same program without it. Whose the blocks are is given here.
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
    Owner owner;
    owner.making = making;
    owner.phase = phase;
    owner.category = category;
    owner.category_known = Confidence::derived;
    if (!module.empty()) {
      owner.module = path(module);
      if (module == "lm_head") owner.component = attribution.modules[owner.module.value].component = Component::head;
    }
    attribution.blocks.push_back(owner);
  }
  void free(const std::string& block) { scenario.free(++time_ns_, block); }
  /// The latest block is the storage of this tensor.
  void is_tensor(ModelTensor::Role role, bool requires_grad, std::uint64_t mib = 0, const char* state = "") {
    attribution.tensors.push_back({{static_cast<std::uint32_t>(attribution.blocks.size() - 1)},
                                   static_cast<std::uint32_t>(scenario.definitions.tensors.size()),
                                   {}});
    tell(role, requires_grad, mib, state);
  }
  /// Of the one parameter, whose module is number 0.
  void tell(ModelTensor::Role role, bool requires_grad, std::uint64_t mib = 0, const char* state = "") {
    ModelTensor tensor;
    tensor.role = role;
    tensor.requires_grad = requires_grad;
    tensor.time_ns = time_ns_;
    tensor.module = NnModuleId{0};
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
  EXPECT_EQ(advice.known_as, Confidence::derived);
  EXPECT_FALSE(training(false).advice().contains(AdviceKind::gradients_in_forward));
}

// zero_grad(set_to_none=False): the gradient stays, and a new value is added to it. Had it been freed, the new value
// would be there from when it is made: 40 of weights, and before that x (100) and seed (5), then seed and the new
// value.
TEST(FindAdvice, GradientsThatAreAddedToAreAwayUntilThen) {
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

// The optimizer made state for a parameter that was frozen later, when a temporary of 20 MiB had been there. Then comes
// one of 40: the peak is 150, and would be 130.
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

// Made by C++ code that DistributedDataParallel calls; the gradients lie in blocks of their own.
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

// Two layers of 20 MiB, gathered in the forward pass; those of the outermost module stay. At the peak (weights 10,
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

// What fails is the third layer's first request: of the first two, x (60 each) would have been away.
TEST(FindAdvice, SaysWhatWasHeldWhenARequestFailed) {
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

TEST(FindAdvice, NamesRepeatedLayers) {
  EXPECT_EQ(advice::layer_of("model.layers.3.mlp.experts.1.w1"), "model.layers.3");
  EXPECT_EQ(advice::layer_of("layer1.0.conv1"), "layer1.0");
  EXPECT_EQ(advice::layer_of("0"), "0");
  EXPECT_EQ(advice::layer_of("model.norm"), "");
  EXPECT_EQ(advice::layer_of(""), "");
}

}  // namespace
}  // namespace tidemark
