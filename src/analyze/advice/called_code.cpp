// What libraries allocate in a training by default, found by their code in the stacks.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/advice/rules.h"
#include "analyze/common/stack_matching.h"

namespace tidemark::advice {
namespace {

/// Whether a Python frame of a stack satisfies `matches(file, function)`, each stack asked once.
template <typename Matches>
class StacksWith {
 public:
  StacksWith(const Definitions& definitions, Matches matches) : definitions_(definitions), matches_(matches) {}

  bool contains(StackId stack) {
    std::vector<StackId> open;
    bool found = false;
    for (; stack.value < definitions_.stacks.size(); stack = definitions_.stacks[stack.value].parent) {
      if (const auto known = known_.find(stack); known != known_.end()) {
        found = known->second;
        break;
      }
      open.push_back(stack);
      const LocationId id = definitions_.stacks[stack.value].location;
      if (id.value >= definitions_.locations.size()) continue;
      const Location& frame = definitions_.locations[id.value];
      const bool python = frame.kind == Location::Kind::python;
      if (python && matches_(definitions_.text(frame.file), plain_name(definitions_.text(frame.function)))) {
        found = true;
        break;
      }
    }
    for (const StackId node : open) known_[node] = found;
    return found;
  }

 private:
  const Definitions& definitions_;
  Matches matches_;
  std::unordered_map<StackId, bool> known_;
};

/// The blocks that such code makes in forward passes, where a backward pass follows in the recording.
template <typename Matches>
std::vector<EarlierFree> made_in_forward(const Subject& subject, Matches matches) {
  const bool trains =
      std::ranges::any_of(subject.blocks, [&](BlockId block) { return subject.owner(block).phase == Phase::backward; });
  if (!trains) return {};
  StacksWith stacks(subject.store.definitions, matches);
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    const Phase phase = subject.owner(block).phase;
    const bool in_forward = phase == Phase::forward || phase == Phase::recomputation;
    if (in_forward && stacks.contains(subject.store.blocks.stack[block.value])) {
      frees.push_back(never_there(subject.store, block));
    }
  }
  return frees;
}

}  // namespace

// Transformers appends the keys and values of each layer to a cache that only generation reads.
std::vector<EarlierFree> key_value_cache(const Subject& subject) {
  return made_in_forward(subject, [](std::string_view file, std::string_view /*function*/) {
    return file.ends_with("transformers/cache_utils.py");
  });
}

// PEFT keeps adapters in 32 bits by default and converts what goes into them.
std::vector<EarlierFree> adapter_input_casts(const Subject& subject) {
  return made_in_forward(
      subject, [](std::string_view /*file*/, std::string_view function) { return function == "_cast_input_dtype"; });
}

}  // namespace tidemark::advice
