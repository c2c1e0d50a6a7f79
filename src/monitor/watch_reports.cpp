#include "monitor/watch_reports.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxSources = 10;
constexpr std::size_t kMaxHolders = 3;  // of each type

/// Calls `analyze(n, store, symbols, stacks)` for each recording that has events; `stacks`: the recorded stacks of the
/// blocks.
template <typename Analyze>
void analyze_each(const RecordingsWatch& recordings, const Analyze& analyze) {
  const std::size_t count = recordings.processes().size();
  for (std::size_t n = 0; n < count; ++n) {
    Store window = recordings.window(n);
    const std::vector<StackId> stacks = window.blocks.stack;
    const AttributedStore store = attribute(std::move(window));
    Symbols symbols(store.definitions);
    analyze(n, store, symbols, stacks);
  }
}

// The stack of the latest block with this recorded stack: attribution gives the block a stack that names modules.
StackId attributed(const Store& store, const std::vector<StackId>& stacks, std::uint64_t recorded) {
  for (std::size_t block = stacks.size(); block-- > 0;) {
    if (stacks[block].value == recorded) return store.blocks.stack[block];
  }
  return {};
}

std::optional<std::string> module_of(const NamedStack& stack) {
  return stack.module ? std::optional(stack.frames[*stack.module].function) : std::nullopt;
}

void add_to_modules(const GrowingSource& source, std::vector<GrowingModule>& modules) {
  const auto name = module_of(source.stack);
  auto module = std::find_if(modules.begin(), modules.end(), [&](const GrowingModule& known) {
    return known.device == source.device && known.module == name;
  });
  if (module == modules.end()) module = modules.insert(modules.end(), {source.device, name, 0, 0.0, 0});
  module->bytes_per_minute += source.growth.bytes_per_minute.value;
  module->held_bytes += source.growth.held_bytes;
  if (!source.growth.bytes_per_step) {
    module->bytes_per_step.reset();
  } else if (module->bytes_per_step) {
    *module->bytes_per_step += source.growth.bytes_per_step->value;
  }
}

void add_sources(const RecordedProcess& process, const Store& store, Symbols& symbols,
                 const std::vector<StackId>& stacks, RecordedLeaks& found) {
  for (const auto& [device, growths] : process.growths) {
    if (!growths.steps_decide()) continue;
    for (const LiveGrowth& growth : growths.sources) {
      if (growth.classification != GrowthClass::leak || !growth.source) continue;
      const StackId stack = attributed(store, stacks, *growth.source);
      found.sources.push_back({device, name_stack(symbols, stack), growth});
      add_to_modules(found.sources.back(), found.modules);
    }
  }
  const auto rate = [](const GrowingSource& source) { return source.growth.bytes_per_minute.value; };
  std::ranges::stable_sort(found.sources, std::greater<>(), rate);
  std::ranges::stable_sort(found.modules, std::greater<>(), &GrowingModule::bytes_per_minute);
  if (found.sources.size() <= kMaxSources) return;
  found.other_sources = found.sources.size() - kMaxSources;
  found.sources.resize(kMaxSources);
}

void add_to_holders(const HeldStorage& storage, std::vector<GrowingHolder>& holders) {
  const std::string name = holder_of(storage.chains.front());
  auto holder = std::ranges::find(holders, name, &GrowingHolder::name);
  if (holder == holders.end()) holder = holders.insert(holders.end(), {name, storage.chains.front(), 0, 0});
  ++holder->storages;
  holder->bytes += storage.bytes;
}

std::vector<GrowingType> types_of(const ObjectAnswer& answer) {
  std::vector<GrowingType> types;
  for (const HeldStorage& storage : answer.storages) {
    if (storage.kind.empty()) continue;
    auto type = std::find_if(types.begin(), types.end(), [&](const GrowingType& known) {
      return known.kind == storage.kind && known.type == storage.type;
    });
    if (type == types.end()) type = types.insert(types.end(), {storage.kind, storage.type, 0, 0, 0, {}, 0});
    ++type->storages;
    type->bytes += storage.bytes;
    type->native += storage.native ? 1 : 0;
    if (!storage.chains.empty()) add_to_holders(storage, type->holders);
  }
  for (GrowingType& type : types) {
    std::ranges::stable_sort(type.holders, std::greater<>(), &GrowingHolder::bytes);
    type.other_holders = type.holders.size() - std::min(type.holders.size(), kMaxHolders);
    type.holders.resize(type.holders.size() - type.other_holders);
  }
  std::ranges::stable_sort(types, std::greater<>(), &GrowingType::bytes);
  return types;
}

// The time until which an answer's addresses are valid: later ones may be of other storages.
std::uint64_t answered_ns(const ObjectAnswer& answer, const LiveRecording& recording) {
  if (answer.older_because.empty()) return std::numeric_limits<std::uint64_t>::max();
  return answer.answered_wall_ns - std::min(recording.started_wall_ns, answer.answered_wall_ns);
}

// The leak of a storage: its block, alive at the answer, has one of the leak's stacks.
LeakObject* leak_of(const HeldStorage& storage, std::uint64_t answered_ns, const Store& store, Leaks& leaks) {
  for (std::size_t block = store.blocks.count(); block-- > 0;) {
    if (store.blocks.address[block] != storage.address) continue;
    if (store.live_changes[store.blocks.birth_change[block]].time_ns > answered_ns) continue;
    const auto death = store.blocks.death_change[block];
    if (death != Blocks::kAlive && store.live_changes[death].time_ns <= answered_ns) continue;
    for (const LeakSite& site : leaks.leaks) {
      const auto& stacks = site.stack_ids;
      const bool is_of = std::find(stacks.begin(), stacks.end(), store.blocks.stack[block]) != stacks.end();
      if (is_of && site.object < leaks.objects.size()) return &leaks.objects[site.object];
    }
    return nullptr;
  }
  return nullptr;
}

// References are more precise than stacks: for each leak, the mistake and holder shown by most bytes of its storages.
void match_mistakes(const ObjectAnswer& answer, const LiveRecording& recording, const Store& store, Leaks& leaks) {
  const std::uint64_t until_ns = answered_ns(answer, recording);
  std::map<std::tuple<LeakObject*, UsualMistake, std::string>, std::uint64_t> bytes;
  std::map<LeakObject*, std::uint64_t> all;
  std::map<LeakObject*, std::uint64_t> native;
  std::map<LeakObject*, std::uint64_t> in_graphs;
  std::vector<std::pair<LeakObject*, const HeldStorage*>> leaked;
  for (const HeldStorage& storage : answer.storages) {
    LeakObject* leak = leak_of(storage, until_ns, store, leaks);
    if (leak == nullptr) continue;
    leaked.emplace_back(leak, &storage);
    all[leak] += storage.bytes;
    if (storage.native) native[leak] += storage.bytes;
    if (storage.native || is_held_by_graph(storage.chains)) in_graphs[leak] += storage.bytes;
  }
  for (const auto& [leak, storage] : leaked) {
    // Where most of it is held by containers themselves, they are what has to be emptied: .detach() would not help.
    const bool by_graphs = leak->keeps_graphs && 2 * in_graphs[leak] > all[leak];
    const MatchedMistake mistake = match_usual_mistake({by_graphs, storage->chains, {}, leak->ends_in_scalar});
    if (mistake.confidence == Confidence::exact) bytes[{leak, mistake.mistake, mistake.holder}] += storage->bytes;
  }
  std::map<LeakObject*, std::uint64_t> most;
  for (const auto& [what, size] : bytes) {
    const auto& [leak, mistake, holder] = what;
    if (size <= most[leak]) continue;
    most[leak] = size;
    leak->mistake = {mistake, Confidence::exact, holder};
  }
  // What grows in every step without an object that refers to it is mostly in autograd graphs.
  for (const auto& [leak, size] : native) {
    if (leak->mistake.mistake != UsualMistake::none || size <= all[leak] / 2) continue;
    leak->mistake = {UsualMistake::tensors_with_graph, Confidence::estimated, {}};
  }
}

}  // namespace

std::optional<double> WatchRun::unused_share(const std::string& device) const {
  RunningValue all;
  for (const RecordedProcess& process : recorded) {
    for (const RecordedDevice& on : process.devices) {
      if (on.key == device) all.add(on.unused_share);
    }
  }
  return all.mean();
}

std::vector<RecordedLeaks> recorded_leaks(const RecordingsWatch& recordings) {
  std::vector<RecordedLeaks> all;
  const std::vector<RecordedProcess> processes = recordings.processes();
  analyze_each(recordings, [&](std::size_t n, const AttributedStore& store, Symbols& symbols, const auto& stacks) {
    LeakOptions options;
    options.attribution = store.attribution.get();
    auto leaks = analyze_leaks(store, symbols, options);
    if (!leaks) return;
    RecordedLeaks& found = all.emplace_back();
    found.process = n;
    found.leaks = std::move(*leaks);
    add_sources(processes[n], store, symbols, stacks, found);
    tell_rows_apart(found.sources, &GrowingSource::stack);
    auto objects = recordings.objects(n);
    if (!objects) {
      found.objects_unknown = objects.error().message;
      return;
    }
    found.types = types_of(*objects);
    match_mistakes(*objects, processes[n].recording, store, found.leaks);
    found.objects = std::move(*objects);
  });
  return all;
}

std::vector<RecordedFragmentation> recorded_fragmentation(const RecordingsWatch& recordings) {
  std::vector<RecordedFragmentation> all;
  analyze_each(recordings, [&](std::size_t n, const AttributedStore& store, Symbols& symbols, const auto& /*stacks*/) {
    FragmentationOptions options;
    options.begin_ns = recordings.window_begin_ns(n);
    auto fragmentation = analyze_fragmentation(store, symbols, options);
    if (fragmentation) all.push_back({n, std::move(*fragmentation)});
  });
  return all;
}

}  // namespace tidemark
