#include "analyze/leaks/held_passes.h"

#include <algorithm>

namespace tidemark {

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
    // What made no node has the number of what came before it.
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

StackId ForwardPasses::usual_last(const HeldPasses& passes, bool are_graphs) const {
  std::map<StackId, std::size_t> counts;
  for (const auto& [number, pass] : passes) {
    const BlockId end = are_graphs && pass.graph_end.valid() ? pass.graph_end : pass.last;
    ++counts[store_.blocks.stack[end.value]];
  }
  const auto usual = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return usual == counts.end() ? StackId{} : usual->first;
}

}  // namespace tidemark
