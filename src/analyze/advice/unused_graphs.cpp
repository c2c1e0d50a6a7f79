// Forward passes that make an autograd graph which no backward pass goes back through: validation, generation,
// teachers.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

using Parts = std::vector<std::string_view>;

/// Of two elements of a list, by their places: numbers without leading zeros.
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

/// What one call of an outermost module allocated and kept for longer than its own code needed it.
struct Call {
  std::vector<BlockId> blocks;    ///< of its modules, in order of birth
  std::vector<EarlierFree> held;  ///< from when no module's call has them any more
  std::uint64_t end = 0;          ///< index into Store::live_changes

  [[nodiscard]] std::uint64_t from(const Subject& subject) const {
    return subject.store.blocks.birth_change[blocks.front().value];
  }
};

class CallFinder {
 public:
  explicit CallFinder(const Subject& subject) : subject_(subject), blocks_(subject.store.blocks) {
    parts_.reserve(subject.attribution.modules.size());
    for (const ModulePath& module : subject.attribution.modules) parts_.push_back(parts_of(module.path));
  }

  std::vector<Call> find() {
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

  // What an operator frees before it returns, such as a workspace, is not its result.
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

  // A block is needed until the innermost call is over that goes on after it: the variables of that call may have it.
  // Where that runs a list of modules, each gets the result of the one before, which is freed when it returns.
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
      if (is_last) continue;  // the result of all of it
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
  Call call_;
  std::vector<Call> calls_;
};

enum class Fate : std::uint8_t { backward, unused, unknown };

/// Whether a backward pass freed some of a call's blocks. Unknown where others are alive at the end, or memory ran out
/// before they were freed.
Fate fate_of(const Subject& subject, const Call& call) {
  Fate fate = call.held.empty() ? Fate::unknown : Fate::unused;
  for (const EarlierFree& away : call.held) {
    const bool failed = std::ranges::any_of(subject.store.out_of_memory, [&](const OutOfMemory& failure) {
      return subject.store.blocks.birth_change[away.block.value] < failure.change_count &&
             failure.change_count <= away.to;
    });
    if (failed || away.to == EarlierFree::kEnd) {
      fate = Fate::unknown;
      continue;
    }
    const std::size_t begun = subject.spans_until(away.to);
    if (begun > 0 && subject.spans[begun - 1].phase == Phase::backward) return Fate::backward;
  }
  return fate;
}

}  // namespace

// As under torch.no_grad(): freed when no module's code has it any more. Where nothing says whether a backward pass
// would have come, the call is one of more than twice as many in a row as any backward pass went back through.
std::vector<EarlierFree> inference_with_autograd(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  if (blocks.sequence.empty()) return {};
  std::vector<Call> calls = CallFinder(subject).find();
  std::erase_if(calls, [&](const Call& call) {
    return blocks.sequence[call.blocks.back().value] == blocks.sequence[call.blocks.front().value];
  });
  std::vector<Fate> fates;
  std::map<std::size_t, std::size_t> in_span;  // how many calls
  std::vector<std::size_t> spans;              // of each call
  fates.reserve(calls.size());
  spans.reserve(calls.size());
  std::size_t most_used = 0;
  for (const Call& call : calls) {
    spans.push_back(subject.spans_until(call.from(subject)));
    ++in_span[spans.back()];
    fates.push_back(fate_of(subject, call));
  }
  for (std::size_t n = 0; n < calls.size(); ++n) {
    if (fates[n] == Fate::backward) most_used = std::max(most_used, in_span[spans[n]]);
  }
  std::vector<EarlierFree> frees;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const bool unused = fates[n] == Fate::unused ||
                        (fates[n] == Fate::unknown && in_span[spans[n]] > 2 * std::max<std::size_t>(1, most_used));
    if (unused) frees.insert(frees.end(), calls[n].held.begin(), calls[n].held.end());
  }
  return frees;
}

}  // namespace tidemark::advice
