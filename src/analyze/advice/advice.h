// Changes of a program that would lower its peak, each with the bytes that it would save.
//
// A saving is the peak minus the peak without the affected blocks (reduced_peak): exact for the recorded run, if the
// program otherwise behaves the same. For an out-of-memory failure, it is the size of these blocks at the failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/common/stack_names.h"
#include "analyze/steps/training_steps.h"
#include "base/enum_names.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

enum class AdviceKind : std::uint8_t {
  checkpoint_activations,    ///< recompute the activations of the repeated layers in the backward pass
  gradients_in_forward,      ///< free gradients before the next forward pass: zero_grad(set_to_none=True)
  frozen_gradients,          ///< gradients of parameters with requires_grad=False
  frozen_optimizer_state,    ///< optimizer state of parameters that need no gradient
  large_optimizer_state,     ///< more than two tensors of the parameter's size and type for each trained parameter
  attention_matrices,        ///< scaled_dot_product_attention(): matrices of sequence x sequence are held
  logits,                    ///< compute the loss in chunks: tensors of the logits' size are held at the peak
  logits_upcast,             ///< as logits, and some are copies in twice the precision
  gradient_buckets,          ///< DistributedDataParallel(gradient_as_bucket_view=True)
  gathered_parameters,       ///< fully_shard(reshard_after_forward=True) of the repeated layers
  checkpoint_copies,         ///< copies of the model or the optimizer made to save them
  loaded_checkpoint,         ///< tensors of a checkpoint that was loaded, beside the model that they were copied to
  model_copies,              ///< a copy of the model by copy.deepcopy, such as an average of its weights
  retained_graph,            ///< autograd graphs kept over steps, such as by losses in a list
  inference_with_autograd,   ///< call the model in torch.no_grad(): no backward pass uses its graph
  unused_gradients,          ///< backward pass through modules without any gradient that an optimizer uses
  forwards_before_backward,  ///< call backward() after each forward pass: several wait for one backward pass
  checkpoint_each_layer,     ///< one checkpoint recomputes several of the repeated layers at once
  optimizer_temporaries,     ///< temporary tensors of a step for all parameters at once: fused=True, or foreach=False
  kept_over_steps,           ///< blocks of several steps that are freed together, such as outputs of an epoch
  failed_call,               ///< memory kept alive by the exception of a call that ran out of memory
  repeated_concatenation,    ///< a growing tensor, reallocated while the previous one is still alive
  collected_results,         ///< results of many calls, without graphs, that are collected and freed together
  held_results,              ///< results of a step or an evaluation that a variable holds until the next ones exist
};
inline constexpr EnumName<AdviceKind> kAdviceKindNames[] = {
    {AdviceKind::checkpoint_activations, "checkpoint_activations"},
    {AdviceKind::gradients_in_forward, "gradients_in_forward"},
    {AdviceKind::frozen_gradients, "frozen_gradients"},
    {AdviceKind::frozen_optimizer_state, "frozen_optimizer_state"},
    {AdviceKind::large_optimizer_state, "large_optimizer_state"},
    {AdviceKind::attention_matrices, "attention_matrices"},
    {AdviceKind::logits, "logits"},
    {AdviceKind::logits_upcast, "logits_upcast"},
    {AdviceKind::gradient_buckets, "gradient_buckets"},
    {AdviceKind::gathered_parameters, "gathered_parameters"},
    {AdviceKind::checkpoint_copies, "checkpoint_copies"},
    {AdviceKind::loaded_checkpoint, "loaded_checkpoint"},
    {AdviceKind::model_copies, "model_copies"},
    {AdviceKind::retained_graph, "retained_graph"},
    {AdviceKind::inference_with_autograd, "inference_with_autograd"},
    {AdviceKind::unused_gradients, "unused_gradients"},
    {AdviceKind::forwards_before_backward, "forwards_before_backward"},
    {AdviceKind::checkpoint_each_layer, "checkpoint_each_layer"},
    {AdviceKind::optimizer_temporaries, "optimizer_temporaries"},
    {AdviceKind::kept_over_steps, "kept_over_steps"},
    {AdviceKind::failed_call, "failed_call"},
    {AdviceKind::repeated_concatenation, "repeated_concatenation"},
    {AdviceKind::collected_results, "collected_results"},
    {AdviceKind::held_results, "held_results"}};
[[nodiscard]] constexpr std::string_view name_of(AdviceKind kind) {
  return name_in(kAdviceKindNames, kind);
}

/// A module that advice is about.
struct AdviceModule {
  std::string path;
  std::uint64_t bytes = 0;  ///< bytes of the affected blocks: alive at the peak or, if none is, the maximum at one time
};

struct Advice {
  AdviceKind kind = AdviceKind::checkpoint_activations;
  Confidence confidence = Confidence::estimated;  ///< the least certain of the blocks concerned
  std::uint64_t avoidable_peak_bytes = 0;         ///< reduction of the device's peak, or of its memory at a failure
  std::uint64_t peak_bytes = 0;                   ///< of the affected blocks that are alive at the peak
  std::uint64_t peak_blocks = 0;
  std::uint64_t added_bytes = 0;      ///< of blocks that would be alive at the peak because they would be allocated
                                      ///< earlier
  bool has_request = false;           ///< at a failure: the request was for another one of these blocks
  NamedStack stack;                   ///< the stack with the most of these bytes; without frames if unknown
  std::vector<AdviceModule> modules;  ///< checkpoint_activations, frozen_…: most bytes first
};

/// Checks each device for faults once, on the first call for that device. Most checks need modules or tensors in the
/// recording.
class Adviser {
 public:
  /// All arguments must outlive the object. `steps`: steps already found in this store; null: found here.
  Adviser(const Store& store, Symbols& symbols, const Attribution& attribution, const TrainingSteps* steps = nullptr);
  ~Adviser();
  Adviser(const Adviser&) = delete;
  Adviser& operator=(const Adviser&) = delete;

  /// The advice for a device that is worth a headline (is_worth_advice), the largest saving first.
  [[nodiscard]] std::vector<Advice> at_peak(std::size_t device);

  /// The same for the state when a request failed: how much less would have been allocated on the device then.
  [[nodiscard]] std::vector<Advice> at_failure(const OutOfMemory& failure);

 private:
  struct Device;

  const Device& analyze(std::size_t device);

  const Store& store_;
  Symbols& symbols_;
  const Attribution& attribution_;
  TrainingSteps found_steps_;
  const TrainingSteps& steps_;
  std::vector<std::unique_ptr<const Device>> devices_;  // by index; null until the first call for that device
};

}  // namespace tidemark
