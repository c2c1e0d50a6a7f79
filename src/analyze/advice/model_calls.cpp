#include "analyze/advice/model_calls.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tidemark::advice {
namespace {

using Parts = std::vector<std::string_view>;

/// Compares indexes of two elements of a list: numbers without leading zeros.
bool comes_before(std::string_view left, std::string_view right) {
  return std::pair(left.size(), left) < std::pair(right.size(), right);
}

Parts parts_of(std::string_view path) {
  Parts parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::size_t common_parts(const Parts& left, const Parts& right) {
  const auto differ = std::ranges::mismatch(left, right);
  return static_cast<std::size_t>(differ.in1 - left.begin());
}

class CallFinder {
 public:
  explicit CallFinder(const Subject& subject) : subject_(subject), blocks_(subject.store.blocks) {
    parts_.reserve(subject.attribution.modules.size());
    for (const ModulePath& module : subject.attribution.modules) parts_.push_back(parts_of(module.path));
  }

  std::vector<ModelCall> find() {
    for (const BlockId block : subject_.blocks) {
      const Owner& owner = subject_.owner(block);
      const bool in_module = owner.phase == Phase::forward && owner.module.valid();
      drop_temporaries(blocks_.birth_change[block.value]);
      if (!in_module || is_called_again(block)) end_call(blocks_.birth_change[block.value]);
      if (in_module) call_.blocks.push_back(block);
    }
    end_call(subject_.store.live_changes.size());
    return std::move(calls_);
  }

 private:
  [[nodiscard]] const Parts& parts(BlockId block) const { return parts_[subject_.owner(block).module.value]; }

  // Blocks that an operator frees before it returns, such as a workspace, are not its result.
  void drop_temporaries(std::uint64_t change) {
    std::vector<BlockId>& made = call_.blocks;
    while (!made.empty() && blocks_.death_change[made.back().value] < change) made.pop_back();
  }

  // After the last element of a list comes an earlier one.
  [[nodiscard]] bool is_called_again(BlockId block) const {
    if (call_.blocks.empty()) return false;
    const Parts& before = parts(call_.blocks.back());
    const Parts& now = parts(block);
    const std::size_t common = common_parts(before, now);
    if (common == before.size() || common == now.size()) return false;
    return is_place(before[common]) && is_place(now[common]) && comes_before(now[common], before[common]);
  }

  void end_call(std::uint64_t change) {
    if (call_.blocks.size() > 1) {
      call_.end = change;
      find_held();
      calls_.push_back(std::move(call_));
    }
    call_ = {};
  }

  // A block is needed until the innermost call ends that goes on after it: the variables of that call may hold it. If
  // that call runs a list of modules, each gets the result of the one before, which is freed when it returns.
  void find_held() {
    std::vector<std::uint64_t> ends;  // by number of parts: where the call of the module with that path ends
    std::vector<std::uint64_t> next_ends;
    for (std::size_t n = call_.blocks.size(); n-- > 0;) {
      const BlockId block = call_.blocks[n];
      const Parts& path = parts(block);
      const bool is_last = n + 1 == call_.blocks.size();
      const std::size_t common = is_last ? 0 : common_parts(path, parts(call_.blocks[n + 1]));
      const std::uint64_t next = is_last ? call_.end : blocks_.birth_change[call_.blocks[n + 1].value];
      next_ends = std::exchange(ends, {});
      next_ends.resize(std::max(next_ends.size(), common + 2), call_.end);
      for (std::size_t depth = 0; depth <= path.size(); ++depth) {
        ends.push_back(depth <= common ? next_ends[depth] : next);
      }
      // The final result, or memory kept by a library.
      if (is_last || subject_.owner(block).category == Category::workspace) continue;
      const Parts& next_path = parts(call_.blocks[n + 1]);
      const bool in_list =
          common < path.size() && is_place(path[common]) && common < next_path.size() && is_place(next_path[common]);
      const std::uint64_t from = in_list ? next_ends[common + 1] : ends[common];
      const EarlierFree life = never_there(subject_.store, block);
      if (from < life.to) call_.held.push_back({block, from, life.to});
    }
  }

  const Subject& subject_;
  const Blocks& blocks_;
  std::vector<Parts> parts_;  // by ModulePathId
  ModelCall call_;
  std::vector<ModelCall> calls_;
};

}  // namespace

std::vector<ModelCall> calls_with_graph(const Subject& subject) {
  const std::vector<std::uint64_t>& sequence = subject.store.blocks.sequence;
  if (sequence.empty()) return {};
  std::vector<ModelCall> calls = CallFinder(subject).find();
  std::erase_if(calls, [&](const ModelCall& call) {
    return sequence[call.blocks.back().value] == sequence[call.blocks.front().value];
  });
  return calls;
}

std::optional<std::size_t> backward_at(const Subject& subject, std::uint64_t change) {
  const std::size_t begun = subject.spans_until(change);
  return begun > 0 && subject.spans[begun - 1].phase == Phase::backward ? std::optional(begun - 1) : std::nullopt;
}

std::optional<std::size_t> backward_of(const Subject& subject, const ModelCall& call) {
  for (const EarlierFree& saved : call.held) {
    if (const auto backward = backward_at(subject, saved.to)) return backward;
  }
  return std::nullopt;
}

std::map<std::size_t, std::vector<ModelCall>> calls_by_backward(const Subject& subject) {
  std::map<std::size_t, std::vector<ModelCall>> calls;
  for (ModelCall& call : calls_with_graph(subject)) {
    if (const auto backward = backward_of(subject, call)) calls[*backward].push_back(std::move(call));
  }
  return calls;
}

std::vector<NnModuleId> modules_in(const Definitions& definitions, StackId stack) {
  std::vector<NnModuleId> modules;
  for (; stack.valid(); stack = definitions.stacks[stack.value].parent) {
    const LocationId location = definitions.stacks[stack.value].location;
    if (!location.valid()) continue;  // a frame without a place, in a snapshot
    const NnModuleId module = definitions.locations[location.value].nn_module;
    if (module.valid()) modules.push_back(module);
  }
  std::ranges::reverse(modules);
  return modules;
}

}  // namespace tidemark::advice
