#include "model/model_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

StoredTensor tensor(const std::string& name, std::vector<std::uint64_t> shape, std::uint64_t width = 4) {
  StoredTensor made{name, width == 4 ? "float32" : "float16", std::move(shape), 1, 0, 0};
  for (const std::uint64_t size : made.shape) made.elements *= size;
  made.bytes = made.elements * width;
  return made;
}

ModelFacts facts_of(std::vector<StoredTensor> tensors, std::uint64_t oversized = kOversizedBytes) {
  Checkpoint checkpoint;
  checkpoint.files.push_back({"m.safetensors", 0, tensors.size()});
  checkpoint.tensors = std::move(tensors);
  return describe_model(std::move(checkpoint), oversized);
}

std::vector<std::pair<std::string, std::uint64_t>> bytes_of(const std::vector<TensorGroup>& groups) {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const TensorGroup& group : groups) found.emplace_back(group.name, group.bytes);
  return found;
}

TEST(ModelFacts, GroupsAddUp) {
  const ModelFacts facts =
      facts_of({tensor("bias", {2}), tensor("embed.weight", {10, 2}, 2), tensor("layers.0.up.weight", {2, 3}),
                tensor("layers.1.up.weight", {2, 3}), tensor("layers.3.up.weight", {2, 3})},
               24);
  EXPECT_EQ(facts.total.bytes, 8U + 40 + 3 * 24);
  EXPECT_EQ(facts.total.parameters, 2U + 20 + 3 * 6);
  EXPECT_THAT(bytes_of(facts.layers), ElementsAre(Pair("", 8), Pair("embed", 40), Pair("layers.0", 24),
                                                  Pair("layers.1", 24), Pair("layers.3", 24)));
  EXPECT_THAT(
      bytes_of(facts.modules),
      ElementsAre(Pair("embed", 40), Pair("layers", 72), Pair("layers.0", 24), Pair("layers.0.up", 24),
                  Pair("layers.1", 24), Pair("layers.1.up", 24), Pair("layers.3", 24), Pair("layers.3.up", 24)));
  EXPECT_THAT(bytes_of(facts.dtypes), ElementsAre(Pair("float32", 80), Pair("float16", 40)));
  EXPECT_THAT(bytes_of(facts.shapes), ElementsAre(Pair("[2]", 8), Pair("[10, 2]", 40), Pair("[2, 3]", 72)));
  ASSERT_EQ(facts.blocks.size(), 1U);
  EXPECT_EQ(facts.blocks[0].first, "layers.0");
  EXPECT_EQ(facts.blocks[0].last, "layers.1");
  EXPECT_EQ(facts.blocks[0].count, 2U);
  EXPECT_THAT(facts.oversized, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(facts.adapters);
}

TEST(ModelFacts, AdaptersOfEverySpelling) {
  const ModelFacts facts = facts_of({
      tensor("m.e.lora_embedding_A.default", {2, 9}),
      tensor("m.e.lora_embedding_B.default", {4, 2}),
      tensor("m.q.base_layer.weight", {4, 8}),
      tensor("m.q.lora_A.first.weight", {2, 8}),
      tensor("m.q.lora_A.second.weight", {4, 8}),
      tensor("m.q.lora_B.first.weight", {4, 2}),
      tensor("m.v.lora_A.weight", {2, 8}),
      tensor("m.v.lora_B.weight", {4, 2}),
      tensor("not_lora_A.weight", {5}),
  });
  ASSERT_TRUE(facts.adapters);
  const AdapterFacts& adapters = *facts.adapters;
  EXPECT_EQ(adapters.parameters, 18U + 8 + 16 + 32 + 8 + 16 + 8);
  EXPECT_EQ(adapters.base_parameters, 32U + 5);
  EXPECT_THAT(adapters.bytes_by_rank, ElementsAre(Pair(2, 4 * (26 + 24 + 24)), Pair(4, 4 * 32)));
  EXPECT_THAT(adapters.target_modules, ElementsAre(Pair("e", 1), Pair("q", 1), Pair("v", 1)));
  ASSERT_EQ(adapters.modules.size(), 4U);
  EXPECT_EQ(adapters.modules[1].adapter, "first");
  EXPECT_TRUE(adapters.modules[1].has_both);
  EXPECT_EQ(adapters.modules[1].base_parameters, 32U);
  EXPECT_FALSE(adapters.modules[2].has_both);
  EXPECT_EQ(adapters.modules[3].adapter, "");
  EXPECT_FALSE(adapters.modules[3].base_parameters);
}

}  // namespace
}  // namespace tidemark
