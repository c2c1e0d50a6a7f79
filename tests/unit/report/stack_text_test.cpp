#include "query/words/stack_text.h"

#include <gtest/gtest.h>

#include "query/words/printable.h"

namespace tidemark {
namespace {

FrameName frame_at(const std::string& function, const std::string& file, std::uint32_t line) {
  return {Location::Kind::python, function, file, line};
}

constexpr const char* kLinear = "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py";
constexpr const char* kLlama = "/venv/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py";
constexpr const char* kTrainer = "/venv/lib/python3.12/site-packages/transformers/trainer.py";

// main ← <module>, which called the Trainer to run a model.
NamedStack trained() {
  NamedStack stack;
  stack.frames = {frame_at("<module>", "/home/me/project/train.py", 50),
                  frame_at("main", "/home/me/project/train.py", 42), frame_at("Trainer.train", kTrainer, 2200),
                  frame_at("LlamaMLP.forward", kLlama, 155), frame_at("Linear.forward", kLinear, 125)};
  stack.call_site = 1;
  stack.package = 3;
  stack.leaf = 4;
  return stack;
}

TEST(StackText, ShowsThePlaceAndWhatItCalled) {
  EXPECT_EQ(stack_text(trained()),
            "main (project/train.py:42) → LlamaMLP.forward (transformers/models/llama/modeling_llama.py:155) → "
            "Linear.forward (torch/nn/modules/linear.py)");
  EXPECT_EQ(stack_text(NamedStack{}), "(no stack)");
}

TEST(StackText, HasTheProjectsCallers) {
  NamedStack stack = trained();
  stack.call_site = 4;  // as if the model were the project's
  stack.frames[4] = frame_at("Block.forward", "/home/me/project/model.py", 3);
  stack.package = stack.leaf = std::nullopt;
  EXPECT_EQ(stack_text_with_callers(stack),
            "Block.forward (project/model.py:3) ← main (project/train.py:42) ← <module> (project/train.py:50)");
}

TEST(StackText, HasCallersInPackagesWhereThePlaceIsInOne) {
  NamedStack stack = trained();
  stack.frames.erase(stack.frames.begin(), stack.frames.begin() + 2);
  stack.call_site = 1;
  stack.package = std::nullopt;
  stack.leaf = 2;
  EXPECT_EQ(stack_text_with_callers(stack),
            "LlamaMLP.forward (transformers/models/llama/modeling_llama.py:155) → Linear.forward "
            "(torch/nn/modules/linear.py) ← Trainer.train (transformers/trainer.py:2200)");
}

TEST(StackText, KeepsTheFunctionAndTheLineOfThePlaceLongest) {
  const NamedStack stack = trained();
  EXPECT_EQ(stack_text_with_callers(stack, 200), stack_text_with_callers(stack)) << "180 columns";
  EXPECT_EQ(stack_text_with_callers(stack, 130),
            "main (project/train.py:42) → LlamaMLP.forward (modeling_llama.py:155) → Linear.forward ← <module> "
            "(project/train.py:50)");
  EXPECT_EQ(stack_text_with_callers(stack, 110),
            "main (project/train.py:42) → LlamaMLP.forward (modeling_llama.py:155) → Linear.forward ← <module>:50");
  EXPECT_EQ(stack_text_with_callers(stack, 90),
            "main (project/train.py:42) → LlamaMLP.forward (modeling_llama.py:155) → Linear.forward");
  EXPECT_EQ(stack_text_with_callers(stack, 80), "main (project/train.py:42) → LlamaMLP.forward:155 → Linear.forward");
  EXPECT_EQ(stack_text_with_callers(stack, 60), "main (train.py:42) → LlamaMLP.forward:155 → Linear.forward");
  EXPECT_EQ(stack_text_with_callers(stack, 50), "main:42 → LlamaMLP.forward:155 → Linear.forward");
  EXPECT_EQ(stack_text_with_callers(stack, 40), "main (project/train.py:42)");
  EXPECT_EQ(stack_text_with_callers(stack, 20), "main (train.py:42)");
  for (std::size_t width = 1; width < 200; ++width) {
    EXPECT_LE(display_width(stack_text_with_callers(stack, width)), width);
  }
}

TEST(StackText, ShowsAsManyCallersAsFit) {
  NamedStack stack;
  for (const std::uint32_t line : {1U, 2U, 3U, 4U}) stack.frames.push_back(frame_at("f", "t.py", line));
  stack.call_site = 3;
  EXPECT_EQ(stack_text_with_callers(stack), "f (t.py:4) ← f (t.py:3) ← f (t.py:2) ← f (t.py:1)");
  EXPECT_EQ(stack_text_with_callers(stack, 40), "f (t.py:4) ← f:3 ← f:2 ← f:1");
  EXPECT_EQ(stack_text_with_callers(stack, 24), "f (t.py:4) ← f:3 ← …");
  EXPECT_EQ(stack_text_with_callers(stack, 12), "f (t.py:4)");
}

TEST(StackText, ShowsTheCallerThatTellsItApart) {
  NamedStack stack;
  for (const std::uint32_t line : {1U, 2U, 3U, 4U}) stack.frames.push_back(frame_at("f", "t.py", line));
  stack.call_site = 3;
  stack.apart = 0;
  EXPECT_EQ(stack_text(stack), "f (t.py:4) ← f (t.py:1)");
  EXPECT_EQ(stack_text_with_callers(stack, 27), "f (t.py:4) ← f:3 ← … ← f:1");
  EXPECT_EQ(stack_text_with_callers(stack, 21), "f (t.py:4) ← … ← f:1");
  EXPECT_EQ(place_text(stack), "f (t.py:4)") << "all callers follow";
}

TEST(StackText, ShowsALineOfPyTorchWhereItTellsItApart) {
  NamedStack stack = trained();
  stack.package = std::nullopt;
  EXPECT_EQ(stack_text(stack), "main (project/train.py:42) → Linear.forward (torch/nn/modules/linear.py)");
  stack.apart = 4;
  EXPECT_EQ(stack_text(stack), "main (project/train.py:42) → Linear.forward (torch/nn/modules/linear.py:125)");
}

// Linear.forward in the call of a module, as trained() without the Trainer.
NamedStack in_module() {
  NamedStack stack = trained();
  FrameName call;
  call.function = "model.layers.3.mlp.down_proj";
  call.is_module = true;
  stack.frames.insert(stack.frames.begin() + 4, call);
  stack.leaf = 5;
  stack.module = 4;
  return stack;
}

TEST(StackText, SaysWhichModulesParametersAreGathered) {
  NamedStack stack = in_module();
  stack.gathers = true;
  EXPECT_EQ(stack_text(stack), "all-gather of model.layers.3.mlp.down_proj");
  stack.module.reset();  // of several modules
  EXPECT_EQ(stack_text(stack, 60), "main (train.py:42) → LlamaMLP.forward:155 → Linear.forward");
}

TEST(StackText, SaysWhatSeveralModulesHaveInCommon) {
  NamedStack stack = in_module();
  stack.modules = "model.layers.*.mlp.down_proj";
  EXPECT_EQ(stack_text(stack, 90),
            "main (train.py:42) → LlamaMLP.forward:155 → Linear.forward in model.layers.*.mlp.down_proj");
}

TEST(StackText, SaysTheModule) {
  EXPECT_EQ(stack_text(in_module()),
            "main (project/train.py:42) → LlamaMLP.forward (transformers/models/llama/modeling_llama.py:155) → "
            "Linear.forward (torch/nn/modules/linear.py) in model.layers.3.mlp.down_proj");
  EXPECT_EQ(stack_text(in_module(), 90),
            "main (train.py:42) → LlamaMLP.forward:155 → Linear.forward in model.layers.3.mlp.down_proj");
  EXPECT_EQ(stack_text(in_module(), 50), "main:42 → LlamaMLP.forward:155 → Linear.forward") << "rather than no callee";
}

TEST(StackText, OfTheBackwardPassSaysItsForwardSide) {
  NamedStack stack = in_module();
  FrameName backward;
  backward.function = "(backward)";
  stack.frames.insert(stack.frames.begin(), backward);
  stack.call_site = 2;
  stack.package = 4;
  stack.module = 5;
  stack.leaf = 6;
  stack.backward = 0;
  EXPECT_EQ(stack_text(stack), "backward of model.layers.3.mlp.down_proj (modeling_llama.py:155)");
  EXPECT_EQ(stack_text_with_callers(stack), "backward of model.layers.3.mlp.down_proj (modeling_llama.py:155)");
  stack.module.reset();
  EXPECT_EQ(stack_text(stack), "backward of LlamaMLP.forward (modeling_llama.py:155)");
  FrameName node;
  node.function = "AccumulateGrad";
  stack.frames = {backward, node};
  stack.call_site = 1;
  stack.package = stack.leaf = std::nullopt;
  EXPECT_EQ(stack_text(stack), "backward of AccumulateGrad");
}

}  // namespace
}  // namespace tidemark
