#include "analyze/advice/advice.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "analyze/advice/rules.h"
#include "analyze/attribution/phase_runs.h"
#include "analyze/common/earlier_frees.h"

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
    {AdviceKind::large_optimizer_state, advice::large_optimizer_state, true},
    {AdviceKind::attention_matrices, advice::attention_matrices, true},
    {AdviceKind::logits, advice::logits, false},
    {AdviceKind::logits_upcast, advice::logits_upcast, false},
    {AdviceKind::gradient_buckets, advice::gradient_buckets, false},
    {AdviceKind::gathered_parameters, advice::gathered_parameters, true},
    {AdviceKind::checkpoint_copies, advice::checkpoint_copies, false},
    {AdviceKind::loaded_checkpoint, advice::loaded_checkpoint, false},
    {AdviceKind::model_copies, advice::model_copies, false},
    {AdviceKind::retained_graph, advice::retained_graph, true},
    {AdviceKind::inference_with_autograd, advice::inference_with_autograd, true},
    {AdviceKind::unused_gradients, advice::unused_gradients, true},
    {AdviceKind::forwards_before_backward, advice::forwards_before_backward, false},
    {AdviceKind::checkpoint_each_layer, advice::checkpoint_each_layer, true},
    {AdviceKind::optimizer_temporaries, advice::optimizer_temporaries, false},
    {AdviceKind::kept_over_steps, advice::kept_over_steps, true},
    {AdviceKind::failed_call, advice::failed_call, false},
    {AdviceKind::repeated_concatenation, advice::repeated_concatenation, false},
    {AdviceKind::collected_results, advice::collected_results, false},
    {AdviceKind::held_results, advice::held_results, false},
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

/// `change_count`: the state that the finding is described at.
Advice describe(const advice::Subject& subject, const AdviceRule& entry, const std::vector<EarlierFree>& frees,
                std::uint64_t change_count) {
  const Store& store = subject.store;
  Advice found;
  found.kind = entry.kind;
  found.confidence = Confidence::exact;
  std::unordered_map<StackId, std::uint64_t> stacks;
  std::unordered_map<std::string, std::uint64_t> modules;
  for (const EarlierFree& away : frees) {
    const Owner& owner = subject.owner(away.block);
    found.confidence = std::max(found.confidence, owner.category_confidence);
    if (!away.covers(change_count)) continue;
    const std::uint64_t size = away.size(store);
    if (away.added) {
      found.added_bytes += size;
      continue;
    }
    found.peak_bytes += size;
    ++found.peak_blocks;
    if (const StackId stack = store.blocks.stack[away.block.value]; stack.valid()) stacks[stack] += size;
    if (!entry.by_module || !owner.module.valid()) continue;
    const std::string& path = subject.attribution.modules[owner.module.value].path;
    const std::string layer = advice::layer_of(path);
    modules[layer.empty() ? path : layer] += size;
  }
  if (!stacks.empty()) found.stack = name_stack(subject.symbols, largest(stacks)->first);
  found.modules = list_modules(modules);
  return found;
}

/// `add_saving`: completes the description with the blocks that a rule found. `whole`: total for shares.
template <typename Faults, typename AddSaving>
std::vector<Advice> describe_all(const advice::Subject& subject, const Faults& faults, std::uint64_t whole,
                                 std::uint64_t change_count, const AddSaving& add_saving) {
  std::vector<Advice> result;
  for (const auto& [rule, frees] : faults) {
    Advice found = describe(subject, kRules[rule], frees, change_count);
    add_saving(frees, found);
    if (is_worth_advice(found.avoidable_peak_bytes, whole)) result.push_back(std::move(found));
  }
  std::ranges::stable_sort(result, std::greater<>(), &Advice::avoidable_peak_bytes);
  return result;
}

}  // namespace

struct Adviser::Device {
  advice::Subject subject;
  std::vector<std::pair<std::size_t, std::vector<EarlierFree>>> faults;  // index into kRules, and the blocks that would
                                                                         // be freed
};

Adviser::Adviser(const Store& store, Symbols& symbols, const Attribution& attribution, const TrainingSteps* steps)
    : store_(store),
      symbols_(symbols),
      attribution_(attribution),
      found_steps_(steps == nullptr ? find_training_steps(store) : TrainingSteps{}),
      steps_(steps == nullptr ? found_steps_ : *steps),
      devices_(store.devices.size()) {}

Adviser::~Adviser() = default;

const Adviser::Device& Adviser::analyze(std::size_t device) {
  if (devices_[device] != nullptr) return *devices_[device];
  advice::Subject subject = {store_, symbols_, attribution_, device, steps_, pass_spans(attribution_.phases), {}};
  for (std::uint32_t block = 0; block < store_.blocks.count(); ++block) {
    if (store_.blocks.device[block] == device) subject.blocks.push_back({block});
  }
  auto looked_at = std::make_unique<Device>(Device{std::move(subject), {}});
  for (std::size_t rule = 0; rule < std::size(kRules); ++rule) {
    std::vector<EarlierFree> frees = kRules[rule].rule(looked_at->subject);
    if (!frees.empty()) looked_at->faults.emplace_back(rule, std::move(frees));
  }
  devices_[device] = std::move(looked_at);
  return *devices_[device];
}

std::vector<Advice> Adviser::at_peak(std::size_t device) {
  const auto& [subject, faults] = analyze(device);
  const std::uint64_t peak = store_.devices[device].peak_allocated_bytes;
  return describe_all(subject, faults, peak, store_.devices[device].peak_change_count,
                      [&](const std::vector<EarlierFree>& frees, Advice& found) {
                        found.avoidable_peak_bytes = peak - std::min(peak, reduced_peak(store_, device, frees).bytes);
                      });
}

std::vector<Advice> Adviser::at_failure(const OutOfMemory& failure) {
  const auto& [subject, found_faults] = analyze(failure.device);
  auto faults = found_faults;
  // Blocks kept by the failed call are alive, even without any event since its failure.
  const bool follows = std::ranges::any_of(store_.out_of_memory, [&](const OutOfMemory& before) {
    return before.change_count == failure.change_count && before.time_ns < failure.time_ns;
  });
  for (auto& [rule, frees] : faults) {
    if (!follows || kRules[rule].kind != AdviceKind::failed_call) continue;
    for (EarlierFree& away : frees) away.from -= away.from == failure.change_count && away.from != 0 ? 1 : 0;
  }
  const std::uint64_t allocated = failure.allocated.value_or(store_.devices[failure.device].peak_allocated_bytes);
  return describe_all(
      subject, faults, allocated, failure.change_count, [&](const std::vector<EarlierFree>& frees, Advice& found) {
        found.avoidable_peak_bytes = found.peak_bytes - std::min(found.peak_bytes, found.added_bytes);
        const bool by_size = found.kind == AdviceKind::logits || found.kind == AdviceKind::logits_upcast;
        const bool by_stack = found.kind == AdviceKind::repeated_concatenation;
        found.has_request = std::ranges::any_of(frees, [&](const EarlierFree& away) {
          return (by_size && store_.blocks.size[away.block.value] == failure.requested) ||
                 (by_stack && store_.blocks.stack[away.block.value] == failure.stack);
        });
      });
}

}  // namespace tidemark
