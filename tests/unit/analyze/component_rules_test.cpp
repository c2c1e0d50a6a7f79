#include "analyze/attribution/component_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unit/analyze/model_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::ModelScenario;

// Path, class, classes of the modules around it.
struct Module {
  std::string path;
  std::string type;
  std::vector<std::string> around;
};

std::string component_of(const Module& module, const ComponentRules& rules = ComponentRules::built_in()) {
  const auto rule = rules.for_module({module.path, module.type, module.around});
  return module.path + ": " + std::string(name_in(kComponentNames, rules.component(rule)));
}

const std::string kLinear = "torch.nn.modules.linear.Linear";
const std::string kConv = "torch.nn.modules.conv.Conv2d";
const std::string kLayerNorm = "torch.nn.modules.normalization.LayerNorm";

TEST(ComponentRulesTest, TheBuiltInFileHasNoErrors) {
  const auto parsed = ComponentRules::parse(kComponentRules, "component_rules.txt");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
}

// Names and classes as transformers 5 has them.
TEST(ComponentRulesTest, HuggingFace) {
  const std::string llama = "transformers.models.llama.modeling_llama.Llama";
  const std::string gpt2 = "transformers.models.gpt2.modeling_gpt2.GPT2";
  const std::string conv1d = "transformers.pytorch_utils.Conv1D";
  const std::string bert = "transformers.models.bert.modeling_bert.Bert";
  const std::string vit = "transformers.models.vit.modeling_vit.ViT";
  const std::string t5 = "transformers.models.t5.modeling_t5.T5";
  const std::string mixtral = "transformers.models.mixtral.modeling_mixtral.Mixtral";
  const std::vector<std::string> block = {bert + "Layer", bert + "Encoder", bert + "Model"};
  const std::vector<std::string> found = {
      component_of({"model.embed_tokens", "torch.nn.modules.sparse.Embedding", {llama + "Model"}}),
      component_of({"model.layers.0", llama + "DecoderLayer", {llama + "Model"}}),
      component_of({"model.layers.0.self_attn.q_proj", kLinear, {llama + "Attention", llama + "DecoderLayer"}}),
      component_of({"model.layers.0.mlp.act_fn", "torch.nn.modules.activation.SiLU", {llama + "MLP"}}),
      component_of({"model.layers.0.input_layernorm", llama + "RMSNorm", {llama + "DecoderLayer"}}),
      component_of({"model.rotary_emb", llama + "RotaryEmbedding", {llama + "Model"}}),
      component_of({"lm_head", kLinear, {llama + "ForCausalLM"}}),
      component_of({"transformer.wte", "torch.nn.modules.sparse.Embedding", {gpt2 + "Model"}}),
      component_of({"transformer.h.0.attn.c_attn", conv1d, {gpt2 + "Attention", gpt2 + "Block"}}),
      component_of({"transformer.h.0.mlp.c_fc", conv1d, {gpt2 + "MLP", gpt2 + "Block"}}),
      component_of({"transformer.h.0.ln_1", kLayerNorm, {gpt2 + "Block"}}),
      component_of({"bert.embeddings.word_embeddings", "torch.nn.modules.sparse.Embedding", {bert + "Embeddings"}}),
      component_of({"bert.encoder.layer.0.attention.output.dense", kLinear, {bert + "SelfOutput", bert + "Attention"}}),
      component_of({"bert.encoder.layer.0.attention.output.LayerNorm", kLayerNorm, {bert + "SelfOutput"}}),
      component_of({"bert.encoder.layer.0.intermediate.dense", kLinear, {bert + "Intermediate"}}),
      component_of({"bert.encoder.layer.0.output.dense", kLinear, {bert + "Output"}}),
      component_of({"bert.pooler.dense", kLinear, {bert + "Pooler"}}),
      component_of({"classifier", kLinear, {bert + "ForSequenceClassification"}}),
      component_of(
          {"vit.embeddings.patch_embeddings.projection", kConv, {vit + "PatchEmbeddings", vit + "Embeddings"}}),
      component_of({"vit.layers.0.attention.q_proj", kLinear, {vit + "Attention", vit + "Layer"}}),
      component_of({"encoder.block.0.layer.0.SelfAttention.q", kLinear, {t5 + "Attention", t5 + "LayerSelfAttention"}}),
      component_of({"encoder.block.0.layer.1.DenseReluDense.wi", kLinear, {t5 + "DenseActDense", t5 + "LayerFF"}}),
      component_of({"model.layers.0.mlp.experts", mixtral + "Experts", {mixtral + "SparseMoeBlock"}}),
      component_of({"model.layers.0.mlp.gate", mixtral + "TopKRouter", {mixtral + "SparseMoeBlock"}}),
  };
  EXPECT_EQ(found, (std::vector<std::string>{"model.embed_tokens: embedding",
                                             "model.layers.0: other",
                                             "model.layers.0.self_attn.q_proj: attention",
                                             "model.layers.0.mlp.act_fn: mlp",
                                             "model.layers.0.input_layernorm: normalization",
                                             "model.rotary_emb: embedding",
                                             "lm_head: head",
                                             "transformer.wte: embedding",
                                             "transformer.h.0.attn.c_attn: attention",
                                             "transformer.h.0.mlp.c_fc: mlp",
                                             "transformer.h.0.ln_1: normalization",
                                             "bert.embeddings.word_embeddings: embedding",
                                             "bert.encoder.layer.0.attention.output.dense: attention",
                                             "bert.encoder.layer.0.attention.output.LayerNorm: normalization",
                                             "bert.encoder.layer.0.intermediate.dense: mlp",
                                             "bert.encoder.layer.0.output.dense: mlp",
                                             "bert.pooler.dense: head",
                                             "classifier: head",
                                             "vit.embeddings.patch_embeddings.projection: embedding",
                                             "vit.layers.0.attention.q_proj: attention",
                                             "encoder.block.0.layer.0.SelfAttention.q: attention",
                                             "encoder.block.0.layer.1.DenseReluDense.wi: mlp",
                                             "model.layers.0.mlp.experts: mlp",
                                             "model.layers.0.mlp.gate: mlp"}));
}

TEST(ComponentRulesTest, LoraTakesPrecedenceOverItsTarget) {
  const std::string llama = "transformers.models.llama.modeling_llama.Llama";
  const std::string layer = "peft.tuners.lora.layer.Linear";
  const std::string q = "base_model.model.model.layers.0.self_attn.q_proj";
  EXPECT_EQ(component_of({q, layer, {llama + "Attention"}}), q + ": lora");
  EXPECT_EQ(component_of({q + ".lora_A.default", kLinear, {layer, llama + "Attention"}}), q + ".lora_A.default: lora");
  EXPECT_EQ(component_of({q + ".base_layer", kLinear, {layer, llama + "Attention"}}), q + ".base_layer: attention");
}

TEST(ComponentRulesTest, TorchvisionTimmAndTorch) {
  const std::string resnet = "torchvision.models.resnet.";
  const std::string vit = "timm.models.vision_transformer.";
  const std::string torch = "torch.nn.modules.";
  const std::vector<std::string> found = {
      component_of({"conv1", kConv, {resnet + "ResNet"}}),
      component_of({"layer1.0.bn1", torch + "batchnorm.BatchNorm2d", {resnet + "Bottleneck", resnet + "ResNet"}}),
      component_of({"layer1.0", resnet + "Bottleneck", {resnet + "ResNet"}}),
      component_of({"fc", kLinear, {resnet + "ResNet"}}),
      component_of({"encoder.layers.encoder_layer_0.self_attention", torch + "activation.MultiheadAttention", {}}),
      component_of(
          {"encoder.layers.encoder_layer_0.mlp.0", kLinear, {"torchvision.models.vision_transformer.MLPBlock"}}),
      component_of({"patch_embed.proj", kConv, {"timm.layers.patch_embed.PatchEmbed", vit + "VisionTransformer"}}),
      component_of({"blocks.0.attn.qkv", kLinear, {"timm.layers.attention.Attention", vit + "Block"}}),
      component_of({"blocks.0.mlp.fc1", kLinear, {"timm.layers.mlp.Mlp", vit + "Block"}}),
      component_of({"head", kLinear, {vit + "VisionTransformer"}}),
      component_of({"encoder.layers.0.self_attn.out_proj",
                    torch + "linear.NonDynamicallyQuantizableLinear",
                    {torch + "activation.MultiheadAttention", torch + "transformer.TransformerEncoderLayer"}}),
      component_of({"encoder.layers.0.linear1", kLinear, {torch + "transformer.TransformerEncoderLayer"}}),
      component_of({"0", kLinear, {torch + "container.Sequential"}}),
  };
  EXPECT_EQ(found,
            (std::vector<std::string>{
                "conv1: convolution", "layer1.0.bn1: normalization", "layer1.0: convolution", "fc: head",
                "encoder.layers.encoder_layer_0.self_attention: attention", "encoder.layers.encoder_layer_0.mlp.0: mlp",
                "patch_embed.proj: embedding", "blocks.0.attn.qkv: attention", "blocks.0.mlp.fc1: mlp", "head: head",
                "encoder.layers.0.self_attn.out_proj: attention", "encoder.layers.0.linear1: mlp", "0: other"}));
}

TEST(ComponentRulesTest, AUsersRulesComeFirst) {
  const auto own = ComponentRules::parse("# ours\nmlp  class  net.Mixer  # no attention\n\n", "rules.txt");
  ASSERT_TRUE(own.ok());
  const ComponentRules rules = own->before(ComponentRules::built_in());
  EXPECT_EQ(component_of({"attn", "net.Mixer", {}}, rules), "attn: mlp");
  EXPECT_EQ(component_of({"attn", "net.Other", {}}, rules), "attn: attention");
}

TEST(ComponentRulesTest, ErrorsNameTheLine) {
  EXPECT_EQ(ComponentRules::parse("mlp class x\nmlp class\n", "rules.txt").error().message,
            "rules.txt:2: expected three words, such as 'attention in-class *Attention'");
  EXPECT_EQ(ComponentRules::parse("mlps class x", "rules.txt").error().message,
            "rules.txt:1: no component 'mlps' (available: lora, attention, mlp, embedding, normalization, convolution, "
            "head, other)");
  EXPECT_EQ(
      ComponentRules::parse("mlp kind x", "rules.txt").error().message,
      "rules.txt:1: 'kind' is nothing that a component is known by (available: class, in-class, part, path, file, "
      "function)");
}

// Frames below the innermost named module count with it; if no module has a name, all frames count.
TEST(ComponentRulesTest, OfStacks) {
  ModelScenario run;
  const NnModuleId model = run.root("net.Net");
  const NnModuleId layer = run.module(model, "layers.0.mlp", "net.MLP");
  const LocationId attention = run.package("transformers/integrations/sdpa_attention.py", "sdpa_attention_forward");
  const LocationId loss = run.package("transformers/loss/loss_utils.py", "ForCausalLMLoss");
  const LocationId norm = run.package("torch/nn/modules/normalization.py", "forward");
  const std::vector<std::vector<LocationId>> stacks = {{run.call(model), attention},
                                                       {run.call(model), attention, run.call(layer)},
                                                       {run.call(model), loss},
                                                       {attention, norm},
                                                       {run.script(1)}};
  for (const auto& stack : stacks) run.allocate(1, std::to_string(stack.size()), 64, kGpu, run.stack(stack));
  std::vector<Component> components;
  for (const Owner& owner : attribute_blocks(run.store()).blocks) components.push_back(owner.component);
  EXPECT_EQ(components, (std::vector{Component::attention, Component::mlp, Component::head, Component::normalization,
                                     Component::other}));
}

}  // namespace
}  // namespace tidemark
