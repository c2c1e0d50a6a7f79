#include "analyze/advice/advice.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyze/advice/rules.h"
#include "analyze/common/advice.h"
#include "analyze/common/reduced_peak.h"

namespace tidemark {
namespace {

struct AdviceRule {
  AdviceKind kind;
  advice::Rule rule;
  bool by_module;  ///< whether the modules are worth listing
};

constexpr AdviceRule kRules[] = {
    {AdviceKind::checkpoint_activations, advice::checkpoint_activations, true},
    {AdviceKind::gradients_in_forward, advice::gradients_in_forward, false},
    {AdviceKind::frozen_gradients, advice::frozen_gradients, true},
    {AdviceKind::frozen_optimizer_state, advice::frozen_optimizer_state, true},
    {AdviceKind::logits, advice::logits, false},
    {AdviceKind::gradient_buckets, advice::gradient_buckets, false},
    {AdviceKind::checkpoint_copies, advice::checkpoint_copies, false},
    {AdviceKind::retained_graph, advice::retained_graph, true},
};

template <typename Sums>
auto largest(const Sums& sums) {
  return std::ranges::max_element(sums, {}, [](const auto& entry) { return std::pair(entry.second, entry.first); });
}

std::vector<AdviceModule> list_modules(const std::unordered_map<std::string, std::uint64_t>& bytes) {
  std::vector<AdviceModule> modules;
  modules.reserve(bytes.size());
  for (const auto& [path, sum] : bytes) modules.push_back({path, sum});
  std::ranges::sort(modules, [](const AdviceModule& left, const AdviceModule& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.path < right.path;
  });
  return modules;
}

Advice describe(const advice::Subject& subject, const AdviceRule& entry, const std::vector<EarlierFree>& frees) {
  const Store& store = subject.store;
  Advice found;
  found.kind = entry.kind;
  found.known_as = KnownAs::exact;
  std::unordered_map<StackId, std::uint64_t> stacks;
  std::unordered_map<std::string, std::uint64_t> modules;
  for (const EarlierFree& away : frees) {
    const Owner& owner = subject.attribution.blocks[away.block.value];
    found.known_as = std::max(found.known_as, owner.category_known);
    if (!away.covers(store.devices[subject.device].peak_change_count)) continue;
    const std::uint64_t size = store.blocks.size[away.block.value];
    found.peak_bytes += size;
    ++found.peak_blocks;
    stacks[store.blocks.stack[away.block.value]] += size;
    if (!entry.by_module || !owner.module.valid()) continue;
    const std::string& path = subject.attribution.modules[owner.module.value].path;
    const std::string layer = advice::layer_of(path);
    modules[layer.empty() ? path : layer] += size;
  }
  if (!stacks.empty()) found.stack = name_stack(subject.symbols, largest(stacks)->first);
  found.modules = list_modules(modules);
  return found;
}

}  // namespace

std::vector<Advice> find_advice(const Store& store, Symbols& symbols, const Attribution& attribution,
                                std::size_t device) {
  advice::Subject subject = {store, symbols, attribution, device, phase_spans(store, attribution, device), {}};
  for (std::uint32_t block = 0; block < store.blocks.count(); ++block) {
    if (store.blocks.device[block] == device) subject.blocks.push_back({block});
  }
  const std::uint64_t peak = store.devices[device].peak_allocated_bytes;
  std::vector<Advice> result;
  for (const AdviceRule& entry : kRules) {
    const std::vector<EarlierFree> frees = entry.rule(subject);
    if (frees.empty()) continue;
    const std::uint64_t saving = peak - std::min(peak, reduced_peak(store, device, frees).bytes);
    if (!is_worth_advice(saving, peak)) continue;
    result.push_back(describe(subject, entry, frees));
    result.back().avoidable_peak_bytes = saving;
  }
  std::ranges::stable_sort(result, std::greater<>(), &Advice::avoidable_peak_bytes);
  return result;
}

}  // namespace tidemark
