#include "analyze/leaks/objects.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

namespace tidemark {
namespace {

// Parts of common names of kept objects.
constexpr std::array kMetricNames = {"metric", "score", "acc",    "correct", "pred",
                                     "output", "logit", "result", "eval",    "stat"};
constexpr std::array kCacheNames = {"cache", "memo"};
constexpr std::string_view kHookName = "hook";

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

template <typename Names>
bool has_any(std::string_view text, const Names& names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return text.find(name) != text.npos; });
}

// "__main__.losses[12]" of "__main__.losses[12].grad_fn → (1 node) → …": the object that keeps the graph.
std::string_view before_graph(std::string_view chain) {
  return chain.substr(0, chain.find(".grad_fn"));
}

bool says_loss(std::string_view name) {
  return name.find("loss") != name.npos;
}

// "net._forward_hooks[8].<locals>.mean" and not "net._forward_hooks[0].<locals>.kept[8]": what grows is the number of
// hooks, and not what one of them holds.
bool is_of_own_hook(std::string_view keeper) {
  const auto hooks = keeper.find("hooks[");
  const auto end = hooks == keeper.npos ? hooks : keeper.find(']', hooks);
  return end != keeper.npos && end + 1 < keeper.size() && keeper.find('[', end) == keeper.npos &&
         keeper.find("deque", end) == keeper.npos;
}

UsualMistake mistake_of(std::string_view written, bool keeps_graphs, bool is_scalar) {
  const std::string chain = lower(written);
  const std::string_view keeper = before_graph(chain);
  const bool is_graph = keeper.size() < chain.size();
  if (keeper.find(kHookName) != keeper.npos) {
    return is_of_own_hook(keeper) ? UsualMistake::repeated_hook : UsualMistake::capturing_hook;
  }
  const bool is_element = keeper.find('[') != keeper.npos || keeper.find("deque") != keeper.npos;
  const UsualMistake with_graph = has_any(keeper, kMetricNames)    ? UsualMistake::metrics_not_detached
                                  : is_scalar || says_loss(keeper) ? UsualMistake::losses_with_graph
                                                                   : UsualMistake::tensors_with_graph;
  if (is_graph) return with_graph;
  if (has_any(keeper, kCacheNames)) return UsualMistake::unbounded_cache;
  if (!is_element) return UsualMistake::none;
  // The chain to the tensor that a graph ends in does not go through the graph.
  return keeps_graphs ? with_graph : UsualMistake::growing_container;
}

GrownObject call_site(GroupGrowth&& leak, bool perhaps_input = false) {
  GrownObject object;
  object.perhaps_input = perhaps_input;
  object.growth = leak.growth;
  object.leaks.push_back(std::move(leak));
  return object;
}

class ObjectJoiner {
 public:
  ObjectJoiner(const Store& store, const Attribution& attribution, std::size_t device, std::uint32_t boundaries,
               std::uint32_t warmup)
      : passes_(store, attribution, device), boundaries_(boundaries), warmup_(warmup) {}

  std::vector<GrownObject> run(std::vector<GroupGrowth>&& leaks) {
    std::vector<std::vector<Member>> joined;
    for (Member& member : members_of(leaks)) {
      const auto found = std::ranges::find_if(
          joined, [&](const std::vector<Member>& object) { return belongs(member, object.front()); });
      if (found == joined.end() || !member.is_of_passes) {
        member.perhaps_input = found != joined.end();
        joined.push_back({std::move(member)});
      } else {
        found->push_back(std::move(member));
      }
    }
    std::vector<GrownObject> objects;
    for (std::vector<Member>& members : joined) {
      std::ranges::sort(members, {}, &Member::leak);
      const auto growth = growth_of(members, leaks);
      if (growth && growth->classification == GrowthClass::leak) {
        objects.push_back(join(members, *growth, leaks));
      } else {
        for (const Member& member : members) {
          const bool keeps_graphs = member.has_activations && are_graphs(leaks[member.leak]);
          objects.push_back(call_site(std::move(leaks[member.leak]), member.perhaps_input));
          objects.back().keeps_graphs = keeps_graphs;
        }
      }
    }
    return objects;
  }

 private:
  struct Member {
    std::size_t leak = 0;               // index into the leaks, fastest first
    std::vector<std::uint32_t> passes;  // of its held blocks, increasing; empty: not of forward passes
    bool has_activations = false;
    bool is_of_passes = false;   // as ForwardPasses reports for some of its blocks
    bool perhaps_input = false;  // as in GrownObject
  };

  template <typename Take>
  void for_each_held(const GroupGrowth& leak, Take take) const {
    for (const StepSpan& span : leak.group.spans) {
      if (span.is_held(boundaries_, warmup_)) take(span.block);
    }
  }

  [[nodiscard]] bool are_graphs(const GroupGrowth& leak) const {
    HeldPasses held;
    for_each_held(leak, [&](BlockId block) { passes_.add_held(block, held); });
    passes_.add_activations(held);
    return passes_.are_graphs(held);
  }

  // Leaks of the most passes first, as others may have grown in only some of them.
  [[nodiscard]] std::vector<Member> members_of(const std::vector<GroupGrowth>& leaks) const {
    std::vector<Member> members;
    for (std::size_t index = 0; index < leaks.size(); ++index) {
      Member& member = members.emplace_back();
      member.leak = index;
      if (leaks[index].growth.kind != GrowthKind::retained) continue;
      for_each_held(leaks[index], [&](BlockId block) {
        const auto pass = passes_.pass_of(block);
        if (!pass) return;
        member.passes.push_back(*pass);
        member.has_activations |= passes_.is_activation(block);
        member.is_of_passes |= passes_.is_of_passes(block);
      });
      std::ranges::sort(member.passes);
      member.passes.erase(std::unique(member.passes.begin(), member.passes.end()), member.passes.end());
    }
    std::ranges::stable_sort(members, std::greater<>(), [](const Member& member) {
      return std::pair(member.has_activations, member.passes.size());
    });
    return members;
  }

  [[nodiscard]] static bool belongs(const Member& member, const Member& first) {
    if (member.passes.empty() || !first.has_activations) return false;
    std::vector<std::uint32_t> common;
    std::ranges::set_intersection(member.passes, first.passes, std::back_inserter(common));
    return common.size() * 2 >= member.passes.size();
  }

  // nullopt for a single leak, which is an object by itself.
  [[nodiscard]] std::optional<Growth> growth_of(const std::vector<Member>& members,
                                                const std::vector<GroupGrowth>& leaks) const {
    if (members.size() == 1) return std::nullopt;
    std::vector<StepSpan> spans;
    for (const Member& member : members) {
      const auto& own = leaks[member.leak].group.spans;
      spans.insert(spans.end(), own.begin(), own.end());
    }
    return find_retained_growth(spans, boundaries_, warmup_);
  }

  [[nodiscard]] GrownObject join(const std::vector<Member>& members, const Growth& growth,
                                 std::vector<GroupGrowth>& leaks) const {
    GrownObject object;
    object.growth = growth;
    HeldPasses held;
    for (const Member& member : members) {
      GroupGrowth& leak = leaks[member.leak];
      for_each_held(leak, [&](BlockId block) { passes_.add_held(block, held); });
      const auto& stacks = leak.group.stacks;
      if (member.has_activations)
        object.forward_stacks.insert(object.forward_stacks.end(), stacks.begin(), stacks.end());
      object.leaks.push_back(std::move(leak));
    }
    passes_.add_activations(held);
    const bool are_graphs = passes_.are_graphs(held);
    object.keeps_graphs = are_graphs;
    object.kind = are_graphs ? LeakObjectKind::autograd_graph : LeakObjectKind::forward_pass;
    const ForwardPasses::UsualLast last = passes_.usual_last(held, are_graphs);
    object.last = last.stack;
    object.ends_in_scalar = last.is_scalar;
    return object;
  }

  ForwardPasses passes_;
  std::uint32_t boundaries_;
  std::uint32_t warmup_;
};

}  // namespace

std::string holder_of(std::string_view chain) {
  std::string_view holder = before_graph(chain);
  if (const auto index = holder.rfind('['); index != holder.npos) holder = holder.substr(0, index);
  for (auto index = holder.rfind('['); holder.ends_with(']') && index != holder.npos; index = holder.rfind('[')) {
    holder = holder.substr(0, index);
  }
  return std::string(holder);
}

bool is_held_by_graph(const std::vector<std::string>& chains) {
  return std::ranges::any_of(chains, [](const std::string& chain) { return chain.find(".grad_fn") != chain.npos; });
}

MatchedMistake match_usual_mistake(const LeakEvidence& evidence) {
  for (const std::string& chain : evidence.chains) {
    const UsualMistake mistake = mistake_of(chain, evidence.keeps_graphs, evidence.ends_in_scalar);
    if (mistake != UsualMistake::none) return {mistake, Confidence::exact, holder_of(chain)};
  }
  for (const std::string& function : evidence.functions) {
    const std::string name = lower(function);
    if (name.find(kHookName) != name.npos) return {UsualMistake::capturing_hook, Confidence::estimated};
    if (has_any(name, kCacheNames)) return {UsualMistake::unbounded_cache, Confidence::estimated};
  }
  if (evidence.keeps_graphs) {
    return {evidence.ends_in_scalar ? UsualMistake::losses_with_graph : UsualMistake::tensors_with_graph,
            Confidence::estimated};
  }
  return {};
}

std::vector<GrownObject> join_leaks(const Store& store, const Attribution* attribution, std::size_t device,
                                    std::uint32_t boundaries, std::uint32_t warmup, std::vector<GroupGrowth> leaks) {
  if (attribution != nullptr) {
    return ObjectJoiner(store, *attribution, device, boundaries, warmup).run(std::move(leaks));
  }
  std::vector<GrownObject> objects;
  objects.reserve(leaks.size());
  for (GroupGrowth& leak : leaks) objects.push_back(call_site(std::move(leak)));
  return objects;
}

std::optional<std::uint32_t> ForwardPasses::pass_of(BlockId block) const {
  const bool is_input = attribution_.blocks[block.value].category == Category::input;
  if (!is_activation(block) && !is_input) return std::nullopt;
  const std::uint64_t birth = store_.blocks.birth_change[block.value];
  auto span = std::ranges::upper_bound(spans_, birth, {}, &PhaseSpan::from);
  if (span != spans_.begin()) --span;
  if (is_input) span = std::ranges::find(span, spans_.end(), Phase::forward, &PhaseSpan::phase);
  if (span == spans_.end() || span->phase != Phase::forward) return std::nullopt;
  return static_cast<std::uint32_t>(span - spans_.begin());
}

void ForwardPasses::add_held(BlockId block, HeldPasses& passes) const {
  const auto number = pass_of(block);
  if (!number) return;
  HeldPass& pass = passes[*number];
  if (!pass.last.valid() || pass.last < block) pass.last = block;
  if (!is_activation(block)) return;
  if (!store_.blocks.sequence.empty()) {
    const std::uint64_t sequence = store_.blocks.sequence[block.value];
    pass.first_sequence = pass.held_bytes == 0 ? sequence : std::min(pass.first_sequence, sequence);
    // An operator without a node has the number of the one before.
    const bool is_alike = sequence == pass.last_sequence && pass.graph_end.valid();
    if (sequence > pass.last_sequence || (is_alike && block < pass.graph_end)) pass.graph_end = block;
    pass.last_sequence = std::max(pass.last_sequence, sequence);
  }
  pass.held_bytes += store_.blocks.size[block.value];
}

void ForwardPasses::add_activations(HeldPasses& passes) const {
  for (std::uint32_t index = 0; index < store_.blocks.count(); ++index) {
    const BlockId block{index};
    if (store_.blocks.device[index] != device_ || !is_activation(block)) continue;
    const auto number = pass_of(block);
    const auto pass = number ? passes.find(*number) : passes.end();
    if (pass == passes.end() || pass->second.last < block) continue;
    pass->second.activation_bytes += store_.blocks.size[index];
  }
}

bool ForwardPasses::are_graphs(const HeldPasses& passes) const {
  const auto graphs = std::ranges::count_if(passes, [&](const auto& entry) {
    const auto& [number, pass] = entry;
    const bool has_backward = number + 1 < spans_.size() && spans_[number + 1].phase == Phase::backward;
    const bool made_nodes = pass.last_sequence != 0 ? pass.first_sequence < pass.last_sequence : has_backward;
    return made_nodes && pass.held_bytes * 2 >= pass.activation_bytes;
  });
  return static_cast<std::size_t>(graphs) * 2 > passes.size();
}

ForwardPasses::UsualLast ForwardPasses::usual_last(const HeldPasses& passes, bool are_graphs) const {
  struct Ends {
    std::size_t count = 0;
    std::uint64_t largest = 0;
  };
  std::map<StackId, Ends> ends;
  for (const auto& [number, pass] : passes) {
    const BlockId end = are_graphs && pass.graph_end.valid() ? pass.graph_end : pass.last;
    Ends& of_stack = ends[store_.blocks.stack[end.value]];
    ++of_stack.count;
    of_stack.largest = std::max(of_stack.largest, store_.blocks.size[end.value]);
  }
  const auto usual = std::ranges::max_element(ends, {}, [](const auto& entry) { return entry.second.count; });
  if (usual == ends.end()) return {};
  return {usual->first, usual->second.largest <= pytorch::kMinBlockSize};
}

}  // namespace tidemark
