#include "analyze/leaks/kept_together.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace tidemark {
namespace {

/// Minimum number of steps whose blocks are freed in one step, and of such frees: otherwise it may be one split batch,
/// or the end of the program.
constexpr std::size_t kMinSteps = 4;
constexpr std::size_t kMinTimes = 2;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

struct FreedInOneStep {
  std::set<std::size_t> steps;  // steps in which the blocks are allocated, including the step of the free
  std::vector<EarlierFree> blocks;
};

}  // namespace

std::vector<KeptTogether> find_kept_together(const Store& store, const TrainingSteps& steps, std::size_t device,
                                             const Attribution* attribution, const BlockFilter& filter) {
  const auto& starts = steps.starts;
  if (starts.size() < 2 * kMinSteps) return {};
  std::map<StackId, std::map<std::size_t, FreedInOneStep>> stacks;  // by the step that frees them
  for (std::uint32_t index = 0; index < store.blocks.count(); ++index) {
    const StackId stack = store.blocks.stack[index];
    if (store.blocks.device[index] != device || !stack.valid() || !filter(index)) continue;
    if (attribution != nullptr && attribution->has_model_tensor({index})) continue;
    const EarlierFree life = never_there(store, {index});
    const std::size_t born = steps.begun_by(life.from);
    const std::size_t freed = life.to == EarlierFree::kEnd ? kNever : steps.begun_by(life.to);
    FreedInOneStep& together = stacks[stack][freed];
    // A step that begins at the optimizer has the first forward pass before it: such blocks are no evidence, but are
    // kept if later ones of the stack are.
    if (born != 0) together.steps.insert(born);
    if (freed != born && born < starts.size()) together.blocks.push_back({{index}, starts[born].event_count, life.to});
  }
  std::vector<KeptTogether> found;
  for (auto& [stack, by_step] : stacks) {
    std::erase_if(by_step,
                  [](const auto& entry) { return entry.first != kNever && entry.second.steps.size() < kMinSteps; });
    KeptTogether kept;
    kept.stack = stack;
    kept.times = static_cast<std::uint32_t>(by_step.size() - by_step.count(kNever));
    if (kept.times < kMinTimes) continue;
    for (const auto& [step, together] : by_step) {
      if (step != kNever) kept.steps = std::max(kept.steps, static_cast<std::uint32_t>(together.steps.size()));
      kept.blocks.insert(kept.blocks.end(), together.blocks.begin(), together.blocks.end());
    }
    found.push_back(std::move(kept));
  }
  return found;
}

KeptAtOnce most_at_once(const Store& store, const std::vector<EarlierFree>& kept) {
  std::map<std::uint64_t, std::vector<std::pair<BlockId, bool>>> changes;  // by time; true: kept from then on
  for (const EarlierFree& away : kept) {
    changes[away.from].emplace_back(away.block, true);
    changes[away.to].emplace_back(away.block, false);
  }
  KeptAtOnce now;
  KeptAtOnce most;
  for (const auto& [change, blocks] : changes) {
    for (const auto& [block, begins] : blocks) {
      const std::uint64_t size = store.blocks.size[block.value];
      now.bytes += begins ? size : 0 - size;
      now.blocks += begins ? 1 : std::uint64_t{0} - 1;
    }
    if (now.bytes > most.bytes) most = now;
  }
  return most;
}

}  // namespace tidemark
