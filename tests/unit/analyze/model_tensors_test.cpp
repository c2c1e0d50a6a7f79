// Blocks that hold tensors of the model, and their owners.
#include <gtest/gtest.h>

#include "analyze/attribution/attribution.h"
#include "unit/analyze/model_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::ModelScenario;
using testing::module_of;
using Role = ModelTensor::Role;

TEST(ModelTensorTest, BlocksThatHoldTensors) {
  ModelScenario run;
  const NnModuleId model = run.root("Net");
  const NnModuleId layer = run.module(model, "fc", "torch.nn.modules.linear.Linear");
  run.allocate(1, "earlier", 512, kGpu);
  run.free(2, "earlier");
  run.allocate(3, "weight", 512, kGpu);  // at the same address
  const std::uint64_t same_address = run.events.back().address = run.events.front().address;
  run.tensor(Role::parameter, 10, layer, "weight").storage_bytes = 500;
  run.allocate(4, "bucket", 1024, kGpu);
  run.tensor(Role::gradient, 10, layer, "weight");
  run.tensor(Role::gradient, 10, layer, "bias", 512);
  run.allocate(5, "other", 512, kGpu);
  run.allocate(6, "cpu", 512, testing::kCpu);
  run.events.back().address = same_address;
  run.free(20, "bucket");
  run.allocate(21, "state", 512, kGpu);
  run.tensor(Role::optimizer_state, 30, layer, "weight");
  const Attribution attribution = attribute_blocks(run.store());
  std::vector<Category> categories;
  for (const Owner& owner : attribution.blocks) categories.push_back(owner.category);
  EXPECT_EQ(categories, (std::vector{Category::temporary, Category::parameter, Category::gradient, Category::unknown,
                                     Category::unknown, Category::optimizer_state}));
  EXPECT_EQ(attribution.blocks[1].category_confidence, Confidence::exact);
  EXPECT_EQ(module_of(attribution, attribution.blocks[1]), "fc");
  EXPECT_EQ(attribution.blocks[3].category_confidence, Confidence::unknown);
  std::vector<BlockId> with_tensors;
  for (const TensorInBlock& found : attribution.tensors) with_tensors.push_back(found.block);
  EXPECT_EQ(with_tensors, (std::vector<BlockId>{{1}, {2}, {5}}));
}

// FSDP keeps all gradients of a unit in one buffer, DistributedDataParallel the gradients of a bucket.
TEST(ModelTensorTest, ABufferThatSeveralModulesShareIsOfTheOneAroundThem) {
  ModelScenario run;
  const NnModuleId model = run.root("Net");
  const NnModuleId layer = run.module(model, "layers.1", "net.Block");
  const NnModuleId norm = run.module(model, "layers.1.norm", "torch.nn.modules.normalization.LayerNorm");
  const NnModuleId up = run.module(model, "layers.1.mlp.up", "torch.nn.modules.linear.Linear");
  const NnModuleId other = run.module(model, "layers.11.norm", "torch.nn.modules.normalization.LayerNorm");
  run.allocate(1, "of a unit", 1024, kGpu);
  run.tensor(Role::gradient, 10, norm, "weight");
  run.tensor(Role::gradient, 10, up, "weight");
  run.allocate(2, "of a module", 1024, kGpu);
  run.tensor(Role::gradient, 10, up, "weight");
  run.tensor(Role::gradient, 10, up, "bias");
  run.allocate(3, "of two layers", 1024, kGpu);
  run.tensor(Role::gradient, 10, up, "weight");
  run.tensor(Role::gradient, 10, other, "weight");
  run.allocate(4, "of a unit and one inside", 1024, kGpu);
  run.tensor(Role::parameter, 10, layer, "scale");
  run.tensor(Role::parameter, 10, up, "weight");
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, attribution.blocks[0]), "layers.1");
  EXPECT_EQ(module_of(attribution, attribution.blocks[1]), "layers.1.mlp.up");
  EXPECT_EQ(module_of(attribution, attribution.blocks[2]), "Net");
  EXPECT_EQ(module_of(attribution, attribution.blocks[3]), "layers.1");
}

}  // namespace
}  // namespace tidemark
