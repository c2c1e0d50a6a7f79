#include "analyze/attribution/attribution.h"

#include <gtest/gtest.h>

#include "unit/analyze/model_scenario.h"

namespace tidemark {
namespace {

using testing::kGpu;
using testing::ModelScenario;
using testing::module_of;

std::vector<Phase> phases(const Attribution& attribution) {
  std::vector<Phase> phases;
  for (const Owner& owner : attribution.blocks) phases.push_back(owner.phase);
  return phases;
}

TEST(PhaseTest, InnermostKnownFrameDecides) {
  ModelScenario run;
  const NnModuleId model = run.root("Net");
  const LocationId script = run.script(1);
  const LocationId step = run.package("torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper");
  const LocationId backward = run.package("torch/autograd/__init__.py", "backward");
  const LocationId checkpoint = run.package("torch/utils/checkpoint.py", "checkpoint");
  const LocationId unpack = run.package("torch/utils/checkpoint.py", "_checkpoint_hook.__init__.<locals>.unpack_hook");
  const LocationId loader = run.package("torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__");
  const LocationId schedule = run.package("torch/optim/lr_scheduler.py", "LRScheduler.step");
  const LocationId zero = run.package("torch/optim/optimizer.py", "Optimizer.zero_grad");
  const LocationId call = run.call(model);
  const std::vector<std::pair<std::vector<LocationId>, Phase>> expected = {
      {{}, Phase::other},
      {{script}, Phase::other},
      {{script, schedule}, Phase::other},
      {{script, zero}, Phase::other},  // before the backward pass
      {{script, loader}, Phase::data},
      {{script, loader, call}, Phase::data},  // transforms of torchvision are modules
      {{script, call}, Phase::forward},
      {{script, call, checkpoint, call}, Phase::forward},
      {{script, backward}, Phase::backward},
      {{script, backward, unpack, call}, Phase::recomputation},
      {{script, backward, checkpoint}, Phase::recomputation},
      {{script, backward, call}, Phase::recomputation},
      {{script, step}, Phase::optimizer},
      {{script, step, call}, Phase::forward},  // the closure of LBFGS
      {{script, step, backward}, Phase::backward},
      {{script, backward, step}, Phase::optimizer},  // an optimizer that runs in hooks of the backward pass
      {{unpack, call}, Phase::recomputation},        // autograd's threads
  };
  std::vector<Phase> wanted;
  for (std::size_t block = 0; block < expected.size(); ++block) {
    run.allocate(block, std::to_string(block), 64, kGpu, run.stack(expected[block].first));
    wanted.push_back(expected[block].second);
  }
  EXPECT_EQ(phases(attribute_blocks(run.store())), wanted);
}

TEST(PhaseTest, AllocationsOfAutogradNodes) {
  ModelScenario run;
  const NnModuleId model = run.root("Net");
  const AutogradNodeId node = run.node("torch::autograd::generated::MmBackward0", {});
  const StackId step = run.stack({run.package("torch/optim/optimizer.py", "Optimizer.step")});
  run.allocate(1, "no frames", 64, kGpu);
  run.in_node(node, 7);
  run.allocate(2, "recomputed by a custom function", 64, kGpu, run.stack({run.call(model)}));
  run.in_node(node, 7);
  run.allocate(3, "optimizer in a hook", 64, kGpu, step);
  run.in_node(node, 7);
  run.out_of_memory(4, 1024, kGpu);
  run.in_node(node, 6);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(phases(attribution), (std::vector{Phase::backward, Phase::recomputation, Phase::optimizer}));
  ASSERT_EQ(attribution.out_of_memory.size(), 1U);
  EXPECT_EQ(attribution.out_of_memory[0].phase, Phase::backward);
}

TEST(ModulePathTest, OfTheInnermostFrameWhoseModuleHasAName) {
  ModelScenario run;
  const NnModuleId model = run.root("transformers.models.llama.modeling_llama.LlamaForCausalLM");
  const NnModuleId mlp = run.module(model, "model.layers.3.mlp", "transformers.models.llama.modeling_llama.LlamaMLP");
  run.allocate(1, "root", 64, kGpu, run.stack({run.script(1), run.call(model)}));
  run.allocate(2, "mlp", 64, kGpu, run.stack({run.script(1), run.call(model), run.call(mlp)}));
  run.allocate(3, "in it", 64, kGpu, run.stack({run.call(model), run.call(mlp), run.call(run.unnamed_module())}));
  run.allocate(4, "none", 64, kGpu, run.stack({run.script(1)}));
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, attribution.blocks[0]), "LlamaForCausalLM");
  EXPECT_EQ(module_of(attribution, attribution.blocks[1]), "model.layers.3.mlp");
  EXPECT_EQ(module_of(attribution, attribution.blocks[2]), "model.layers.3.mlp");
  EXPECT_EQ(module_of(attribution, attribution.blocks[3]), "-");
  EXPECT_EQ(attribution.blocks[1].module_confidence, Confidence::exact);
  EXPECT_EQ(attribution.blocks[3].module_confidence, Confidence::unknown);
}

TEST(ModulePathTest, WithoutThePartsOfWrappers) {
  ModelScenario run;
  const NnModuleId wrapper = run.root("torch.nn.parallel.distributed.DistributedDataParallel");
  const std::string torch = "torch._dynamo.eval_frame.OptimizedModule";
  const std::vector<std::pair<NnModuleId, std::string>> expected = {
      {wrapper, "DistributedDataParallel"},
      {run.module(wrapper, "module", torch), "OptimizedModule"},
      {run.module(wrapper, "module._orig_mod", "net.Net"), "Net"},
      {run.module(wrapper, "module._orig_mod.fc", "torch.nn.modules.linear.Linear"), "fc"},
      {run.module(wrapper, "module._orig_mod.module.0._fsdp_wrapped_module.fc", "Linear"), "module.0.fc"},
  };
  for (const auto& [object, path] : expected) run.allocate(1, path, 64, kGpu, run.stack({run.call(object)}));
  const Attribution attribution = attribute_blocks(run.store());
  for (std::size_t block = 0; block < expected.size(); ++block) {
    EXPECT_EQ(module_of(attribution, attribution.blocks[block]), expected[block].second);
  }
}

TEST(ModulePathTest, WithoutThePartsOfOpacus) {
  ModelScenario run;
  const NnModuleId wrapper = run.root("opacus.grad_sample.grad_sample_module.GradSampleModule");
  const NnModuleId model = run.module(wrapper, "_module", "net.Net");
  const NnModuleId layer = run.module(wrapper, "_module.fc", "torch.nn.modules.linear.Linear");
  run.allocate(1, "root", 64, kGpu, run.stack({run.call(model)}));
  run.allocate(2, "layer", 64, kGpu, run.stack({run.call(model), run.call(layer)}));
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, attribution.blocks[0]), "Net");
  EXPECT_EQ(module_of(attribution, attribution.blocks[1]), "fc");
}

TEST(ModulePathTest, SeveralModelsAreToldApart) {
  ModelScenario run;
  const NnModuleId one = run.root("gan.Generator");
  const NnModuleId other = run.root("gan.Discriminator");
  const NnModuleId loss = run.root("torch.nn.modules.loss.BCELoss");
  const StackId stacks[] = {run.stack({run.call(run.module(one, "layers.0", "Linear"))}),
                            run.stack({run.call(run.module(other, "layers.0", "Linear"))}),
                            run.stack({run.call(loss)})};
  for (const StackId stack : stacks) run.allocate(1, std::to_string(stack.value), 64, kGpu, stack);
  const Attribution attribution = attribute_blocks(run.store());
  EXPECT_EQ(module_of(attribution, attribution.blocks[0]), "Generator.layers.0");
  EXPECT_EQ(module_of(attribution, attribution.blocks[1]), "Discriminator.layers.0");
  EXPECT_EQ(module_of(attribution, attribution.blocks[2]), "BCELoss");
}

}  // namespace
}  // namespace tidemark
