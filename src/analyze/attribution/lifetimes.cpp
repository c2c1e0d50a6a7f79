#include "analyze/attribution/lifetimes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "analyze/common/stack_matching.h"
#include "analyze/common/stack_names.h"

namespace tidemark {

namespace {

constexpr int kPassesOfAStep = 12;  // with the time between them

Category category_kept(Phase phase) {
  switch (phase) {
    case Phase::forward:
    case Phase::recomputation:
      return Category::activation;
    case Phase::backward:
      return Category::gradient;
    case Phase::optimizer:
      return Category::optimizer_state;
    case Phase::data:
    case Phase::other:
      break;
  }
  return Category::unknown;
}

// ":4096:2:16:8" in units of 1,024 bytes, and on GPUs of compute capability 9.0 and above ":4096:8".
constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{4096 * 2 + 16 * 8} * 1024;
constexpr std::uint64_t kHopperWorkspaceBytes = std::uint64_t{4096} * 8 * 1024;

// The workspace of cuBLASLt, which adds a Linear's bias: 1 MiB (seen with PyTorch 2.11).
constexpr std::uint64_t kLtWorkspaceBytes = std::uint64_t{1024} * 1024;

enum class Library : std::uint8_t { cublas, cublas_lt };

// Without threads (PyTorch's snapshots), autograd's is the one in backward passes.
using Holder = std::tuple<std::uint8_t, ThreadId, bool, Library>;

bool is_called_by_linear(const Definitions& definitions, StackId stack) {
  const std::vector<LocationId> frames = frames_of(definitions, stack);
  const auto innermost = std::find_if(frames.rbegin(), frames.rend(), [&](LocationId frame) {
    return frame.value < definitions.locations.size() &&
           definitions.locations[frame.value].kind == Location::Kind::python;
  });
  if (innermost == frames.rend()) return false;
  const Location& location = definitions.locations[innermost->value];
  return plain_name(definitions.text(location.function)) == "forward" &&
         installed_path(definitions.text(location.file)) == "torch/nn/modules/linear.py";
}

// Other blocks may have the size of cuBLASLt's, but Linear.forward keeps no other block permanently.
std::optional<Library> library_of(const Store& store, std::uint32_t block) {
  const std::uint64_t size = store.blocks.size[block];
  if (size == kWorkspaceBytes || size == kHopperWorkspaceBytes) return Library::cublas;
  if (size != kLtWorkspaceBytes || !is_called_by_linear(store.definitions, store.blocks.stack[block])) return {};
  return Library::cublas_lt;
}

}  // namespace

Lifetimes::Lifetimes(const Store& store, const PhaseRuns& runs, const std::vector<TensorInBlock>& tensors)
    : store_(store),
      runs_(runs),
      knows_parameters_(!store.definitions.tensors.empty()),
      failures_(store.devices.size()),
      usually_temporary_(store.definitions.stacks.size()),
      makes_inputs_(store.definitions.stacks.size()) {
  for (const OutOfMemory& failure : store.out_of_memory) failures_[failure.device].push_back(failure.change_count);
  for (const TensorInBlock& found : tensors) {
    const ModelTensor& tensor = store.definitions.tensors[found.tensor];
    if (tensor.role == ModelTensor::Role::parameter && tensor.requires_grad) {
      gradient_sizes_.insert(store.blocks.size[found.block.value]);
    }
  }
  read_ended_passes();
  find_inputs();
}

void Lifetimes::find_inputs() {
  const Blocks& blocks = store_.blocks;
  if (blocks.sequence.empty()) return;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const StackId stack = blocks.stack[block];
    if (stack.value >= makes_inputs_.size() || runs_.run(block).phase != Phase::other) continue;
    if (outside_phases(block) == Category::input) makes_inputs_[stack.value] = true;
  }
}

bool Lifetimes::is_input_again(std::size_t block) const {
  const StackId stack = store_.blocks.stack[block];
  return stack.value < makes_inputs_.size() && makes_inputs_[stack.value] && !runs_.made_nodes[block];
}

// Reads passes that ended.
void Lifetimes::read_ended_passes() {
  const Blocks& blocks = store_.blocks;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const PhaseRun& run = runs_.run(block);
    if (runs_.passes[run.pass].end_change == Pass::kNone || is_freed_by_failure(block)) continue;
    const std::uint32_t end = run.phase == Phase::recomputation ? run.end_change : runs_.passes[run.pass].end_change;
    const bool temporary = dies_before(block, end);
    const StackId stack = blocks.stack[block];
    if (stack.value < usually_temporary_.size()) usually_temporary_[stack.value] = temporary;
    if (run.phase == Phase::backward && !temporary) gradient_sizes_.insert(blocks.size[block]);
  }
}

bool Lifetimes::is_freed_by_failure(std::size_t block) const {
  const std::vector<std::uint64_t>& failures = failures_[store_.blocks.device[block]];
  const auto first = std::ranges::upper_bound(failures, store_.blocks.birth_change[block]);
  const std::uint32_t until = std::min(store_.blocks.death_change[block], runs_.pass(block).end_change);
  return first != failures.end() && *first <= until;
}

Category Lifetimes::usual_category(Phase phase, StackId stack, std::uint64_t size) const {
  if (phase == Phase::data) return Category::input;
  if (phase == Phase::backward) {
    if (gradient_sizes_.empty()) return Category::unknown;
    return gradient_sizes_.contains(size) ? Category::gradient : Category::temporary;
  }
  const bool temporary = stack.value < usually_temporary_.size() && usually_temporary_[stack.value];
  return temporary ? Category::temporary : category_kept(phase);
}

Category Lifetimes::outside_phases(std::size_t block) const {
  const Pass* pass = &runs_.pass(block);
  if (dies_before(block, pass->end_change)) return Category::temporary;
  int forward_passes = 0;
  for (int passed = 0; passed < kPassesOfAStep && pass->next != Pass::kNone; ++passed) {
    pass = &runs_.passes[pass->next];
    if (pass->phase == Phase::forward && ++forward_passes > 2) break;
    if (!dies_before(block, pass->end_change)) continue;
    if (forward_passes > 0) return Category::input;
    return pass->phase == Phase::backward ? Category::activation : Category::temporary;
  }
  // A block that stays may be a parameter if parameters are unknown.
  const bool stays = pass->next != Pass::kNone && !knows_parameters_;
  return forward_passes > 0 && !stays ? Category::input : Category::unknown;
}

Category Lifetimes::category(std::size_t block, AllocationOrigin making) const {
  const PhaseRun& run = runs_.run(block);
  const Pass& pass = runs_.passes[run.pass];
  const std::uint32_t end = run.phase == Phase::recomputation ? run.end_change : pass.end_change;
  switch (making) {
    case AllocationOrigin::copy:
    case AllocationOrigin::loaded_copy:
    case AllocationOrigin::model_copy:
    case AllocationOrigin::gathered_parameter:
      return Category::copy;
    case AllocationOrigin::model:
      if (run.phase == Phase::other) return Category::parameter;
      break;
    case AllocationOrigin::gradient_bucket:
      return dies_before(block, end) ? Category::temporary : Category::copy;
    case AllocationOrigin::input:
      return Category::input;
    case AllocationOrigin::per_sample_gradient:
      if (pass.phase == Phase::backward && !dies_before(block, pass.end_change)) return Category::per_sample_gradient;
      break;
    case AllocationOrigin::foreach_step:
    case AllocationOrigin::fusable_step:
    case AllocationOrigin::nothing_known:
      break;
  }
  if (run.phase == Phase::data) return Category::input;
  if (run.phase == Phase::other) return outside_phases(block);
  if (run.phase == Phase::forward && is_input_again(block)) return Category::input;
  if (!is_decided(block)) return usual_category(run.phase, store_.blocks.stack[block], store_.blocks.size[block]);
  return dies_before(block, end) ? Category::temporary : category_kept(run.phase);
}

std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs) {
  const Blocks& blocks = store.blocks;
  std::map<Holder, std::vector<BlockId>> kept;
  for (std::uint32_t block = 0; block < blocks.count(); ++block) {
    const std::optional<Library> library = library_of(store, block);
    if (!library || store.devices[blocks.device[block]].device.type != DeviceType::cuda) continue;
    const std::uint32_t next = runs.pass(block).next;
    const bool outlived_next = next != Pass::kNone && runs.passes[next].end_change != Pass::kNone;
    if (blocks.death_change[block] != Blocks::kAlive || !outlived_next) continue;
    const bool in_backward = runs.run(block).phase == Phase::backward;
    kept[{blocks.device[block], blocks.thread[block], in_backward, *library}].push_back(BlockId{block});
  }
  std::vector<BlockId> workspaces;
  for (const auto& [holder, found] : kept) {
    if (found.size() == 1) workspaces.push_back(found.front());
  }
  std::sort(workspaces.begin(), workspaces.end());
  return workspaces;
}

}  // namespace tidemark
