#include "query/words/advice.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "analyze/attribution/groups.h"
#include "base/units.h"
#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

struct AdviceWords {
  AdviceKind kind;
  const char* finding;
  const char* change;
};

constexpr AdviceWords kWords[] = {
    {AdviceKind::checkpoint_activations, "Activations of the repeated layers are held until the backward pass",
     "checkpoint the layers (model.gradient_checkpointing_enable(), torch.utils.checkpoint)"},
    {AdviceKind::gradients_in_forward, "Gradients are held through the forward pass",
     "call optimizer.zero_grad(set_to_none=True) right after optimizer.step()"},
    {AdviceKind::frozen_gradients, "Parameters that need no gradient have one",
     "set .grad of frozen parameters to None"},
    {AdviceKind::frozen_optimizer_state, "The optimizer keeps state for parameters that need no gradient",
     "give the optimizer only the parameters that are trained"},
    {AdviceKind::large_optimizer_state,
     "The optimizer keeps more than two tensors of each trained parameter's size and type",
     "keep optimizer states in the parameters' type or in 8 bits (bitsandbytes), without amsgrad"},
    {AdviceKind::attention_matrices, "Attention holds matrices of sequence length x sequence length",
     "use F.scaled_dot_product_attention() (attn_implementation=\"sdpa\", need_weights=False)"},
    {AdviceKind::logits, "Several tensors of the size of the logits exist at once",
     "compute the loss in chunks of the sequence, or with a fused cross-entropy"},
    {AdviceKind::logits_upcast,
     "The logits are copied to twice their precision, and several tensors of their size exist",
     "convert the logits in chunks of the sequence, with the loss, or use a fused cross-entropy"},
    {AdviceKind::gradient_buckets, "DistributedDataParallel keeps buckets beside the gradients",
     "DistributedDataParallel(gradient_as_bucket_view=True) makes the gradients views of the buckets"},
    {AdviceKind::gathered_parameters, "FSDP holds gathered parameters of the repeated layers until the backward pass",
     "fully_shard(layer, reshard_after_forward=True), or ShardingStrategy.FULL_SHARD"},
    {AdviceKind::checkpoint_copies, "Copies of a checkpoint being saved are on the device",
     "copy one tensor at a time to the CPU before saving"},
    {AdviceKind::loaded_checkpoint, "Tensors of a checkpoint that was loaded are still on the device",
     "torch.load(FILE, map_location=\"cpu\"), and delete what it returned after load_state_dict()"},
    {AdviceKind::model_copies, "A copy of the model (copy.deepcopy) is on the device",
     "keep the copy on the CPU: an average of the weights (EMA) and the best model so far can be updated there"},
    {AdviceKind::retained_graph, "Autograd graphs are retained over steps",
     "keep loss.item() or loss.detach() instead of the loss, and evaluate in torch.no_grad()"},
    {AdviceKind::inference_with_autograd, "Activations are saved for a backward pass that never runs",
     "call the model in torch.no_grad() or torch.inference_mode() where no backward pass follows"},
    {AdviceKind::unused_gradients, "A backward pass goes through modules whose gradients no optimizer uses",
     "call these modules in torch.no_grad(), or detach() their results, where only what follows them is trained"},
    {AdviceKind::forwards_before_backward, "Activations of several forward passes wait for one backward pass",
     "call backward() on each loss right after its forward pass, where the losses are only added up: gradients add up "
     "too"},
    {AdviceKind::checkpoint_each_layer, "One checkpoint recomputes several of the repeated layers at once",
     "checkpoint each layer by itself"},
    {AdviceKind::optimizer_temporaries, "A step of the optimizer makes temporary tensors for all parameters at once",
     "pass fused=True to Adam, AdamW or SGD, foreach=False to other optimizers"},
    {AdviceKind::kept_over_steps, "Tensors of several steps are kept and then freed together",
     "detach() what is kept, keep .item() of losses, or move it to the CPU"},
    {AdviceKind::failed_call, "The exception of a call that ran out of memory keeps the call's tensors",
     "try again after the except block instead of in it, and do not store the exception"},
    {AdviceKind::repeated_concatenation,
     "A tensor is made again and again, each time larger, while the one before is still there (torch.cat)",
     "collect the parts in a list, on the CPU where the GPU does not need them, and concatenate them once"},
    {AdviceKind::collected_results, "Results of many calls are collected on the device, and freed together",
     "move each result to the CPU where it is collected (.cpu()), or keep only what is read later"},
    {AdviceKind::held_results, "Results of a training step or an evaluation are held while the next ones are computed",
     "del the results (outputs, loss) at the end of the step or the evaluation, if nothing reads them later"},
};

const AdviceWords& words_of(AdviceKind kind) {
  for (const AdviceWords& words : kWords) {
    if (words.kind == kind) return words;
  }
  return kWords[0];
}

/// The project's frame that calls the outermost module of a stack; null if there is none.
const FrameName* caller_of_model(const NamedStack& stack) {
  const FrameName* caller = nullptr;
  for (const FrameName& frame : stack.frames) {
    if (frame.is_module) return caller;
    if (is_project_code(frame)) caller = &frame;
  }
  return nullptr;
}

}  // namespace

std::string advice_finding(const Advice& advice) {
  std::string text =
      fmt::format("{} ({} in {} block{} at the peak", words_of(advice.kind).finding, format_bytes(advice.peak_bytes),
                  format_count(advice.peak_blocks), advice.peak_blocks == 1 ? "" : "s");
  if (advice.modules.size() == 1) text += fmt::format(", {}", printable(advice.modules[0].path));
  if (advice.modules.size() > 1) {
    text += fmt::format(", in {} modules, most in {}: {}", format_count(advice.modules.size()),
                        printable(advice.modules[0].path), format_bytes(advice.modules[0].bytes));
  }
  return text + ")";
}

std::string advice_place(const Advice& advice, std::size_t width) {
  const bool is_of_call = advice.kind == AdviceKind::inference_with_autograd;
  if (const FrameName* caller = is_of_call ? caller_of_model(advice.stack) : nullptr) {
    return fit(frame_text(*caller), width);
  }
  if (advice.modules.empty()) return advice.stack.frames.empty() ? "" : stack_text(advice.stack, width);
  std::vector<std::string> paths;
  paths.reserve(advice.modules.size());
  for (const AdviceModule& module : advice.modules) paths.push_back(module.path);
  const auto common = common_module_path(paths);
  const std::string path = printable(common ? *common : paths[0]);
  // Modules of a torch.nn.Sequential have numbers as names.
  const bool is_number = path.find_first_not_of("0123456789{},-.") == std::string::npos;
  return (is_number ? "module " : "") + path +
         (common ? ""
                 : fmt::format(" and {} more module{}", format_count(paths.size() - 1), paths.size() == 2 ? "" : "s"));
}

std::string advice_change_at(const Advice& advice, std::size_t width) {
  const std::string place = advice_place(advice, width);
  return place.empty() ? advice_change(advice) : fmt::format("{}: {}", place, advice_change(advice));
}

std::string saving_text(const Advice& advice) {
  return (advice.confidence == Confidence::exact ? "" : "~") + format_bytes(advice.avoidable_peak_bytes);
}

std::string advice_change(const Advice& advice) {
  return words_of(advice.kind).change;
}

std::string advice_saving(const Advice& advice) {
  const char* known = advice.confidence == Confidence::exact ? "the tensors' addresses" : "stacks and lifetimes";
  return fmt::format("{} of the peak, by a replay of this run (owners from {})",
                     format_bytes(advice.avoidable_peak_bytes), known);
}

}  // namespace tidemark
