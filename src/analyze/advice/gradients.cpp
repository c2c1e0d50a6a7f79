// Gradients that are held while nothing needs them, and what exists for parameters that are not trained.
#include <algorithm>
#include <string_view>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

constexpr std::string_view kDistributedDataParallel = "torch/nn/parallel/distributed.py";

/// The model's tensors of a role whose parameter needs no gradient.
std::vector<EarlierFree> of_frozen_parameters(const Subject& subject, ModelTensor::Role role) {
  std::vector<EarlierFree> frees;
  for (const TensorInBlock& found : subject.attribution.tensors) {
    const ModelTensor& tensor = subject.store.definitions.tensors[found.tensor];
    if (tensor.role != role || tensor.requires_grad) continue;
    if (subject.store.blocks.device[found.block.value] != subject.device) continue;
    frees.push_back(never_there(subject.store, found.block));
  }
  return frees;
}

/// Whether C++ code that this file calls made the block. Native frames are passed over without being named, for which
/// files would have to be opened.
bool is_made_by(const Subject& subject, StackId stack, std::string_view file) {
  const std::vector<Location>& locations = subject.store.definitions.locations;
  const std::vector<LocationId> frames = subject.symbols.frames(stack);
  const auto python = std::find_if(frames.rbegin(), frames.rend(), [&](LocationId frame) {
    return frame.value < locations.size() && locations[frame.value].kind == Location::Kind::python;
  });
  return python != frames.rend() && subject.symbols.name(*python).file.ends_with(file);
}

}  // namespace

EarlierFree never_there(const Store& store, BlockId block) {
  const std::uint32_t death = store.blocks.death_change[block.value];
  return {block, store.blocks.birth_change[block.value], death == Blocks::kAlive ? EarlierFree::kEnd : death};
}

// A forward pass that comes right after an optimizer step does not need the gradients of that step. One that comes
// after a backward pass does: gradients are being accumulated.
std::vector<EarlierFree> gradients_in_forward(const Subject& subject) {
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    if (subject.attribution.blocks[block.value].category != Category::gradient) continue;
    const EarlierFree life = never_there(subject.store, block);
    for (std::size_t n = 1; n + 1 < subject.spans.size(); ++n) {
      const PhaseSpan& span = subject.spans[n];
      const bool between = span.phase == Phase::forward && subject.spans[n - 1].phase == Phase::optimizer;
      if (between && life.covers(span.from) && life.covers(span.to)) frees.push_back({block, span.from, span.to});
    }
  }
  return frees;
}

std::vector<EarlierFree> frozen_gradients(const Subject& subject) {
  return of_frozen_parameters(subject, ModelTensor::Role::gradient);
}

std::vector<EarlierFree> frozen_optimizer_state(const Subject& subject) {
  return of_frozen_parameters(subject, ModelTensor::Role::optimizer_state);
}

// With gradient_as_bucket_view the gradients are parts of the buckets, and the pointers say so.
std::vector<EarlierFree> gradient_buckets(const Subject& subject) {
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.attribution.blocks[block.value];
    if (owner.category == Category::gradient && owner.category_known == KnownAs::exact) continue;
    const StackId stack = subject.store.blocks.stack[block.value];
    if (is_made_by(subject, stack, kDistributedDataParallel)) frees.push_back(never_there(subject.store, block));
  }
  return frees;
}

std::vector<EarlierFree> checkpoint_copies(const Subject& subject) {
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    if (subject.attribution.blocks[block.value].category == Category::copy) {
      frees.push_back(never_there(subject.store, block));
    }
  }
  return frees;
}

}  // namespace tidemark::advice
