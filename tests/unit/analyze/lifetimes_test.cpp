// Categories of blocks without a known tensor: allocations of a training step, derived by hand.
#include <gtest/gtest.h>

#include "analyze/attribution/attribution.h"
#include "unit/analyze/model_scenario.h"

namespace tidemark {
namespace {

using testing::kCpu;
using testing::kGpu;
using testing::ModelScenario;

// A model in training on one thread, as its script, PyTorch's engine and the optimizer call it.
class TrainingRun : public ModelScenario {
 public:
  TrainingRun() {
    const NnModuleId model = root("Net");
    forward = stack({script(10), call(model)});
    loss = stack({script(11)});
    backward = stack({script(12), package("torch/autograd/__init__.py", "backward")});
    const LocationId step = package("torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper");
    optimizer = stack({script(13), step});
    recompute = stack({script(12), package("torch/autograd/__init__.py", "backward"),
                       package("torch/utils/checkpoint.py", "CheckpointFunction.backward"), call(model)});
    batch = stack({script(9)});
    loader = stack({script(8), package("torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__")});
  }

  void make(const std::string& block, StackId stack, std::uint64_t size = 1024, Device device = kGpu) {
    order_.push_back(block);
    allocate(++now_, block, size, device, stack);
  }
  void drop(const std::string& block) { free(++now_, block); }
  void fail() { out_of_memory(++now_, 4096, kGpu, forward); }
  /// The category of each block by its name.
  [[nodiscard]] std::map<std::string, Category> categories() const {
    const Attribution attribution = attribute_blocks(store());
    std::map<std::string, Category> found;
    for (std::size_t block = 0; block < order_.size(); ++block)
      found[order_[block]] = attribution.blocks[block].category;
    return found;
  }

  StackId forward, loss, backward, optimizer, recompute, batch, loader;

 private:
  std::vector<std::string> order_;
  std::uint64_t now_ = 0;
};

TEST(LifetimeTest, ATrainingStep) {
  TrainingRun run;
  run.make("batch", run.batch);
  run.make("loaded", run.loader);
  run.make("scratch", run.forward);
  run.make("saved", run.forward);
  run.drop("scratch");
  run.make("loss", run.loss);  // after the last call of a module: backward() follows
  run.make("flowing", run.backward);
  run.make("gradient", run.backward);
  run.drop("saved");
  run.drop("flowing");
  run.drop("loss");
  run.make("update", run.optimizer);
  run.make("moment", run.optimizer);
  run.drop("update");
  run.make("next batch", run.batch);
  run.drop("batch");
  run.drop("gradient");
  run.make("next saved", run.forward);
  EXPECT_EQ(run.categories(), (std::map<std::string, Category>{{"batch", Category::input},
                                                               {"loaded", Category::input},
                                                               {"scratch", Category::temporary},
                                                               {"saved", Category::activation},
                                                               {"loss", Category::activation},
                                                               {"flowing", Category::temporary},
                                                               {"gradient", Category::gradient},
                                                               {"update", Category::temporary},
                                                               {"moment", Category::optimizer_state},
                                                               {"next batch", Category::input},
                                                               {"next saved", Category::activation}}));
}

TEST(LifetimeTest, ARecomputedForwardPassIsPartOfItsBackwardPass) {
  TrainingRun run;
  run.make("checkpoint", run.forward);
  run.make("gradient", run.backward);
  run.make("scratch", run.recompute);
  run.make("again", run.recompute);
  run.drop("scratch");
  run.make("flowing", run.backward);
  run.drop("again");
  run.drop("flowing");
  run.make("moment", run.optimizer);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(attribution.blocks[3].phase, Phase::recomputation);
  EXPECT_EQ(run.categories(), (std::map<std::string, Category>{{"checkpoint", Category::activation},
                                                               {"gradient", Category::gradient},
                                                               {"scratch", Category::temporary},
                                                               {"again", Category::activation},
                                                               {"flowing", Category::temporary},
                                                               {"moment", Category::optimizer_state}}));
}

TEST(LifetimeTest, WhereARecordingEndsInAPassTheEarlierOnesCount) {
  TrainingRun run;
  for (const std::string step : {"1 ", "2 "}) {
    run.make(step + "saved", run.forward, 4096);
    run.make(step + "gradient", run.backward, 512);
    run.make(step + "flowing", run.backward, 4096);
    if (step == "2 ") break;  // memory ran out
    run.drop(step + "flowing");
    run.drop(step + "saved");
    run.make(step + "moment", run.optimizer, 512);
    run.drop(step + "gradient");
  }
  run.out_of_memory(1000, 4096, kGpu, run.backward);
  run.out_of_memory(1000, 512, kGpu, run.backward);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(attribution.out_of_memory.at(0).category, Category::temporary);
  EXPECT_EQ(attribution.out_of_memory.at(1).category, Category::gradient);
  const std::map<std::string, Category> categories = run.categories();
  EXPECT_EQ(categories.at("2 gradient"), Category::gradient);
  EXPECT_EQ(categories.at("2 flowing"), Category::temporary);
  EXPECT_EQ(categories.at("2 saved"), Category::activation);
}

// A forward pass runs out of memory, and the exception frees its blocks. The program continues with its next batch.
TEST(LifetimeTest, BlocksFreedByAnExceptionCountAsAlive) {
  TrainingRun run;
  run.make("saved", run.forward);
  run.make("scratch", run.forward);
  run.drop("scratch");
  run.fail();
  run.drop("saved");
  run.make("batch", run.loader);
  run.make("next saved", run.forward);
  run.make("moment", run.optimizer);
  run.drop("next saved");
  const std::map<std::string, Category> categories = run.categories();
  EXPECT_EQ(categories.at("saved"), Category::activation);
  EXPECT_EQ(categories.at("scratch"), Category::temporary);
  EXPECT_EQ(categories.at("next saved"), Category::activation);
}

TEST(LifetimeTest, SomeOriginsDecideInAnyPhase) {
  TrainingRun run;
  const LocationId hook = run.package("opacus/grad_sample/grad_sample_module.py", "capture_backprops_hook");
  const LocationId engine = run.package("torch/autograd/__init__.py", "backward");
  const LocationId gather =
      run.package("torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_all_gather_copy_out");
  const LocationId move = run.package("torch/nn/modules/module.py", "Module._apply");
  const LocationId save = run.package("torch/serialization.py", "save");
  run.make("weight", run.stack({run.script(1), move}));
  run.make("saved", run.forward);
  run.make("gathered", run.stack({run.script(10), gather}));
  run.make("per sample", run.stack({run.script(12), engine, hook}));
  run.make("norm", run.stack({run.script(12), engine, hook}));
  run.drop("norm");
  run.make("moment", run.optimizer);
  run.drop("per sample");
  run.make("checkpoint", run.stack({run.script(14), save}));
  EXPECT_EQ(run.categories(), (std::map<std::string, Category>{{"weight", Category::parameter},
                                                               {"saved", Category::activation},
                                                               {"gathered", Category::copy},
                                                               {"per sample", Category::per_sample_gradient},
                                                               {"norm", Category::temporary},
                                                               {"moment", Category::optimizer_state},
                                                               {"checkpoint", Category::copy}}));
  std::vector<AllocationOrigin> made;
  for (const Owner& owner : attribute_blocks(run.store()).blocks) made.push_back(owner.making);
  EXPECT_EQ(made, (std::vector<AllocationOrigin>{
                      AllocationOrigin::model, AllocationOrigin::nothing_known, AllocationOrigin::gathered_parameter,
                      AllocationOrigin::per_sample_gradient, AllocationOrigin::per_sample_gradient,
                      AllocationOrigin::nothing_known, AllocationOrigin::copy}));
}

TEST(LifetimeTest, RemainingUnnamedBlocksAreUnknown) {
  TrainingRun run;
  run.make("cache", run.batch);
  for (const char* step : {"1", "2", "3"}) {
    run.make(std::string("saved ") + step, run.forward);
    run.make(std::string("flowing ") + step, run.backward);
    run.drop(std::string("saved ") + step);
    run.drop(std::string("flowing ") + step);
    run.make(std::string("update ") + step, run.optimizer);
    run.drop(std::string("update ") + step);
  }
  EXPECT_EQ(run.categories().at("cache"), Category::unknown);
}

TEST(LifetimeTest, CublasKeepsOneWorkspaceAThread) {
  constexpr std::uint64_t kWorkspace = 8519680;  // 2 × 4096 KiB + 8 × 16 KiB
  TrainingRun run;
  run.make("workspace", run.forward, kWorkspace);
  for (const char* step : {"1", "2"}) {
    run.make(std::string("saved ") + step, run.forward, kWorkspace);
    run.make(std::string("flowing ") + step, run.backward);
    run.drop(std::string("saved ") + step);
    run.drop(std::string("flowing ") + step);
    run.make(std::string("moment ") + step, run.optimizer);
  }
  EXPECT_EQ(run.categories().at("workspace"), Category::workspace);
  EXPECT_EQ(attribute_blocks(run.store()).blocks.front().component, Component::other);  // it serves all of them
  EXPECT_EQ(run.categories().at("saved 2"), Category::activation);
}

TEST(LifetimeTest, CublasLtKeepsOneOfItsOwn) {
  constexpr std::uint64_t kWorkspace = 1 << 20;
  TrainingRun run;
  const LocationId call = run.call(run.root("torch.nn.modules.linear.Linear"));
  const StackId linear =
      run.stack({run.script(10), call, run.package("torch/nn/modules/linear.py", "Linear.forward", 134)});
  run.make("workspace", linear, kWorkspace);
  run.make("mask", run.forward, kWorkspace);  // the model keeps it
  for (const char* step : {"1", "2"}) {
    run.make(std::string("saved ") + step, linear, kWorkspace);
    run.make(std::string("flowing ") + step, run.backward);
    run.drop(std::string("saved ") + step);
    run.drop(std::string("flowing ") + step);
    run.make(std::string("moment ") + step, run.optimizer);
  }
  EXPECT_EQ(run.categories().at("workspace"), Category::workspace);
  EXPECT_EQ(run.categories().at("mask"), Category::activation);
  EXPECT_EQ(run.categories().at("saved 2"), Category::activation);
}

// PyTorch's snapshots contain no threads, and autograd's threads have no Python frames.
TEST(LifetimeTest, BlocksWithoutAStackAfterAForwardPassAreOfTheBackwardPass) {
  TrainingRun run;
  run.make("early", {});
  run.make("saved", run.forward);
  run.make("gradient", {});
  run.make("flowing", {});
  run.drop("flowing");
  run.drop("saved");
  run.make("moment", run.optimizer);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(attribution.blocks[0].phase, Phase::other);
  EXPECT_EQ(attribution.blocks[2].phase, Phase::backward);
  EXPECT_EQ(run.categories().at("gradient"), Category::gradient);
  EXPECT_EQ(run.categories().at("flowing"), Category::temporary);
}

}  // namespace
}  // namespace tidemark
