#include "analyze/common/stack_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using testing::Scenario;

constexpr const char* kTrain = "/home/me/project/train.py";
constexpr const char* kLightning = "/venv/lib/python3.12/site-packages/lightning/pytorch/plugins/precision.py";
constexpr const char* kAdamW = "/venv/lib/python3.12/site-packages/torch/optim/adamw.py";
constexpr const char* kOptimizer = "/venv/lib/python3.12/site-packages/torch/optim/optimizer.py";
constexpr const char* kCopy = "/usr/lib/python3.12/copy.py";
constexpr const char* kParameter = "/venv/lib/python3.12/site-packages/torch/nn/parameter.py";

TEST(FrameOrigins, AreKnownByThePath) {
  const auto is = [](FrameOrigin origin, const char* file) { EXPECT_EQ(origin_of(file), origin) << file; };
  is(FrameOrigin::pytorch, "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py");
  is(FrameOrigin::pytorch, "/usr/lib/python3/dist-packages/torch/nn/functional.py");
  is(FrameOrigin::pytorch, "/tmp/torchinductor_me/ab/cabxyz.py");
  is(FrameOrigin::pytorch, "/home/me/cache/l3/cl3czezrfhlxlkyqa7lcsczlodotrwm7xakshby5unruyedmyxoa.py");
  is(FrameOrigin::project, "/home/me/cache/l4/cl3czezrfhlxlkyqa7lcsczlodotrwm7xakshby5unruyedmyxoa.py");
  is(FrameOrigin::project, "/home/me/cache/l3/cl3czezrfhlxlkyqa7lcsczlodotrwm7xakshby5unruyedmyx1a.py");
  is(FrameOrigin::pytorch, "<eval_with_key>.12");
  is(FrameOrigin::package, "/venv/lib/python3.12/site-packages/torchvision/models/resnet.py");
  is(FrameOrigin::package, "/home/me/project/.venv/lib/python3.12/site-packages/transformers/trainer.py");
  is(FrameOrigin::package, "/venv/bin/torchrun");
  is(FrameOrigin::pytorch, "site-packages/torch/cuda/graphs.py");  // of a snapshot with shortened paths
  is(FrameOrigin::standard_library, "/usr/lib/python3.11/copy.py");
  is(FrameOrigin::standard_library, "/usr/lib64/python3.9/contextlib.py");
  is(FrameOrigin::standard_library, "/opt/conda/lib/python3.10/multiprocessing/process.py");
  is(FrameOrigin::standard_library, "/usr/lib/python311.zip/copy.py");
  is(FrameOrigin::standard_library, "<frozen runpy>");
  is(FrameOrigin::project, "/home/me/torch/train.py");
  is(FrameOrigin::project, "/home/me/lib/python/train.py");
  is(FrameOrigin::project, "/home/me/bin/train.py");
  is(FrameOrigin::project, "/home/me/my-site-packages/torch/train.py");
  is(FrameOrigin::project, "<string>");
  is(FrameOrigin::project, "/tmp/ipykernel_812/3141.py");
  is(FrameOrigin::project, "train.py");
  is(FrameOrigin::project, "");
}

class StackNames : public ::testing::Test {
 protected:
  NamedStack named(const std::vector<LocationId>& frames) {
    const StackId stack = scenario_.stack(frames);
    const Store store = scenario_.store();
    Symbols symbols(store.definitions);
    return name_stack(symbols, stack);
  }
  LocationId python(const char* function, const char* file, std::uint32_t line) {
    return scenario_.python(function, file, line);
  }

  Scenario scenario_;
};

TEST_F(StackNames, TakeTheProjectForThePlaceAndThePackageForWhatItCalled) {
  const NamedStack stack = named({python("main", kTrain, 42), python("Precision.optimizer_step", kLightning, 123),
                                  python("wrapper", kOptimizer, 493), python("AdamW.step", kAdamW, 220)});
  EXPECT_EQ(stack.call_site, 0U);
  EXPECT_EQ(stack.package, 1U);
  EXPECT_EQ(stack.leaf, 3U);
}

TEST_F(StackNames, DoNotTakeTheStandardLibraryForTheProject) {
  const NamedStack stack = named(
      {python("main", kTrain, 10), python("deepcopy", kCopy, 153), python("Parameter.__deepcopy__", kParameter, 68)});
  EXPECT_EQ(stack.call_site, 0U);
  EXPECT_EQ(stack.package, std::nullopt);
  EXPECT_EQ(stack.leaf, 2U);
}

TEST_F(StackNames, TakeTheNearestFrameOfTheProject) {
  const NamedStack stack =
      named({python("main", kTrain, 42), python("Trainer.fit", kLightning, 1), python("Net.forward", kTrain, 7)});
  EXPECT_EQ(stack.call_site, 2U);
  EXPECT_EQ(stack.package, std::nullopt);
  EXPECT_EQ(stack.leaf, std::nullopt);
}

TEST_F(StackNames, TakeAPackageWhereThereIsNoProject) {
  const NamedStack stack = named({python("_run_module_as_main", "<frozen runpy>", 198),
                                  python("Trainer.fit", kLightning, 1), python("AdamW.step", kAdamW, 220)});
  EXPECT_EQ(stack.call_site, 1U);
  EXPECT_EQ(stack.package, std::nullopt);
  EXPECT_EQ(stack.leaf, 2U);
}

TEST_F(StackNames, TellStacksApartByTheNearestCallerThatDiffers) {
  const LocationId main = python("main", kTrain, 42);
  const LocationId forward = python("forward", kTrain, 7);
  std::vector<NamedStack> stacks = {
      named({main, python("encode", kTrain, 20), forward}), named({main, python("decode", kTrain, 30), forward}),
      named({python("evaluate", kTrain, 50), python("decode", kTrain, 30), forward}), named({main})};
  tell_rows_apart(stacks, [](NamedStack& stack) -> NamedStack& { return stack; });
  EXPECT_EQ(stacks[0].apart, 1U);
  EXPECT_EQ(stacks[1].apart, 0U) << "decode does not tell it from the third";
  EXPECT_EQ(stacks[2].apart, 0U);
  EXPECT_EQ(stacks[3].apart, std::nullopt) << "no other looks like it";
}

TEST_F(StackNames, TellStacksApartByWhatThePlaceCalled) {
  const LocationId main = python("main", kTrain, 42);
  const LocationId leaf = python("AdamW.step", kAdamW, 220);
  std::vector<NamedStack> stacks = {named({main, python("wrapper", kOptimizer, 1), leaf}),
                                    named({main, python("wrapper", kOptimizer, 2), leaf})};
  tell_rows_apart(stacks, [](NamedStack& stack) -> NamedStack& { return stack; });
  EXPECT_EQ(stacks[0].apart, 1U);
  EXPECT_EQ(stacks[1].apart, 1U);
}

TEST_F(StackNames, PreferTheUsersPythonOverNativeLeaves) {
  const NamedStack stack = named({python("step", "train.py", 7), python("linear", kAdamW, 9),
                                  scenario_.native("/nonexistent/libtorch_cpu.so", 0x10)});
  EXPECT_EQ(stack.call_site, 0U);
  EXPECT_EQ(stack.leaf, 1U);
}

TEST_F(StackNames, SkipTheAllocatorInNativeStacks) {
  const NamedStack stack =
      named({scenario_.native("/nonexistent/libtorch_cpu.so", 0x10),
             scenario_.native("/nonexistent/libc10_cuda.so", 0x20), scenario_.native("/nonexistent/libc10.so", 0x30)});
  EXPECT_EQ(stack.frames[stack.call_site].function, "libtorch_cpu.so+0x10");
  EXPECT_EQ(stack.leaf, std::nullopt);
}

// PyTorch's own frames without a name are less informative than their callers.
TEST_F(StackNames, PreferNativeFramesWithAName) {
  const NamedStack stack =
      named({scenario_.native("/nonexistent/program", 0x10), scenario_.native("/nonexistent/libtorch_cuda.so", 0x20),
             scenario_.native("/nonexistent/libc10_cuda.so", 0x30)});
  EXPECT_EQ(stack.frames[stack.call_site].function, "program+0x10");
}

TEST_F(StackNames, ShowTheInnermostFrameWhenAllIsTorch) {
  const NamedStack stack = named({python("backward", kAdamW, 1), python("apply", kAdamW, 2)});
  EXPECT_EQ(stack.call_site, 1U);
  EXPECT_EQ(stack.leaf, std::nullopt);
}

TEST_F(StackNames, NameTheModuleThatFsdpGathers) {
  constexpr const char* kGather =
      "/venv/lib/python3.12/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py";
  const LocationId call = python("layers.3", "", 0);
  scenario_.definitions.locations.back().file = {};
  scenario_.definitions.locations.back().nn_module = NnModuleId{0};
  const LocationId main = python("main", kTrain, 42);
  const LocationId gather = python("foreach_all_gather", kGather, 150);
  EXPECT_TRUE(named({main, call, gather}).gathers);
  EXPECT_FALSE(named({main, gather, call}).gathers) << "a module that it called";
  EXPECT_FALSE(named({main, call, python("silu", kParameter, 1)}).gathers);
}

// A call in each of these modules, or in none ("").
TEST_F(StackNames, ShareTheCommonPartOfModules) {
  const auto shared = [](const std::vector<std::string>& paths) {
    Scenario scenario;
    std::vector<StackId> stacks;
    for (const std::string& path : paths) {
      std::vector<LocationId> frames = {scenario.python("main", kTrain, 42)};
      if (!path.empty()) {
        frames.push_back(scenario.python(path, "", 0));
        scenario.definitions.locations.back().file = {};
        scenario.definitions.locations.back().nn_module = NnModuleId{0};
      }
      frames.push_back(scenario.python("silu", kParameter, 5));
      stacks.push_back(scenario.stack(frames));
    }
    const Store store = scenario.store();
    Symbols symbols(store.definitions);
    NamedStack stack = name_stack(symbols, stacks.front());
    share_modules(stack, symbols, stacks);
    if (!stack.module) return std::string("-");
    return stack.modules.empty() ? stack.frames[*stack.module].function : stack.modules;
  };
  EXPECT_EQ(shared({"layers.3.mlp"}), "layers.3.mlp");
  EXPECT_EQ(shared({"layers.3.mlp", "layers.3.mlp"}), "layers.3.mlp");
  EXPECT_EQ(shared({"layers.3.mlp", "layers.11.mlp", "layers.0.mlp"}), "layers.{0,3,11}.mlp");
  EXPECT_EQ(shared({"layers.2.mlp", "layers.0.mlp", "layers.1.mlp"}), "layers.{0-2}.mlp");
  EXPECT_EQ(shared({"layers.3.1", "layers.11.2"}), "layers.*.*");
  EXPECT_EQ(shared({"layers.3.mlp", "layers.3.attn"}), "layers.3.mlp and another module");
  EXPECT_EQ(shared({"layers.3", "layers.3.mlp", "head", "layers.3"}), "layers.3 and 2 other modules");
  EXPECT_EQ(shared({"layers.3", ""}), "-");
}

}  // namespace
}  // namespace tidemark
