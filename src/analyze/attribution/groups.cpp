#include "analyze/attribution/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyze/common/stack_matching.h"
#include "analyze/common/stack_names.h"
#include "analyze/steps/training_steps.h"
#include "store/symbols.h"

namespace tidemark {

namespace {

bool is_known(const Owner& owner, OwnerKind kind) {
  switch (kind) {
    case OwnerKind::category:
      return owner.category_confidence != Confidence::unknown;
    case OwnerKind::component:
      return owner.component != Component::other;
    case OwnerKind::layer:
    case OwnerKind::module:
      return owner.module.valid();
    case OwnerKind::phase:
      return owner.phase != Phase::other;
    case OwnerKind::step:
      break;
  }
  return true;
}

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// By BlockId; see TrainingSteps::begun_by().
std::vector<std::uint32_t> steps_of_blocks(const Store& store, const TrainingSteps& steps) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(store.blocks.count());
  std::uint32_t begun = 0;
  for (const std::uint32_t birth : store.blocks.birth_change) {
    while (begun < steps.starts.size() && steps.starts[begun].event_count <= birth) ++begun;
    numbers.push_back(begun);
  }
  return numbers;
}

bool is_of_pass(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::recomputation;
}

// Empty if no frame is the program's own.
std::string line_of_stack(const Definitions& definitions, StackId stack) {
  const std::vector<LocationId> frames = frames_of(definitions, stack);
  const auto location = [&](LocationId id) {
    return id.value < definitions.locations.size() ? definitions.locations[id.value] : Location{};
  };
  const auto innermost = std::find_if(frames.rbegin(), frames.rend(), [&](LocationId id) {
    const Location frame = location(id);
    const std::string_view file = definitions.text(frame.file);
    return frame.kind == Location::Kind::python && !file.empty() && origin_of(file) == FrameOrigin::project;
  });
  if (innermost == frames.rend()) return "";
  const Location line = location(*innermost);
  std::string name = fmt::format("({}:{}", base_name(definitions.text(line.file)), line.line);
  if (innermost != frames.rbegin()) {
    const Location called = location(*(innermost - 1));
    const bool is_python = called.kind == Location::Kind::python && called.file.valid();
    if (is_python) name += fmt::format(": {}", plain_name(definitions.text(called.function)));
  }
  return name + ")";
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char letter : path) {
    if (letter == '.') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

// "{0-3,7}"; "*" if a number has more digits than layer numbers have.
std::string number_ranges(const std::vector<std::string>& numbers) {
  constexpr std::size_t kMaxDigits = 9;
  std::set<std::uint64_t> sorted;
  for (const std::string& number : numbers) {
    if (number.size() > kMaxDigits) return "*";
    sorted.insert(std::stoul(number));
  }
  std::string ranges;
  for (auto first = sorted.begin(); first != sorted.end();) {
    auto last = first;
    while (std::next(last) != sorted.end() && *std::next(last) == *last + 1) ++last;
    if (!ranges.empty()) ranges += ",";
    ranges += last == first ? fmt::format("{}", *first) : fmt::format("{}-{}", *first, *last);
    first = std::next(last);
  }
  return "{" + ranges + "}";
}

}  // namespace

std::optional<std::string> common_module_path(const std::vector<std::string>& paths) {
  constexpr std::size_t kMaxRanges = 24;  // characters
  if (paths.empty()) return std::nullopt;
  std::vector<std::string> common = parts_of(paths.front());
  std::map<std::size_t, std::vector<std::string>> numbers;  // by part, for parts in which the paths differ
  for (const std::string& path : paths) {
    const std::vector<std::string> parts = parts_of(path);
    if (parts.size() != common.size()) return std::nullopt;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (parts[part] == common[part]) continue;
      if (!is_number(parts[part]) || !is_number(common[part])) return std::nullopt;
      numbers[part];
    }
  }
  for (auto& [part, found] : numbers) {
    for (const std::string& path : paths) found.push_back(parts_of(path)[part]);
    common[part] = number_ranges(found);
    if (numbers.size() > 1 || common[part].size() > kMaxRanges) common[part] = "*";
  }
  return fmt::format("{}", fmt::join(common, "."));
}

std::string layer_of(const std::string& path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (is_number(std::string_view(path).substr(begin, end - begin))) return path.substr(0, end);
    begin = end + 1;
  }
  return path;
}

Result<void> check_known(const Store& store, const Attribution& attribution, OwnerKind kind) {
  const auto known = [kind](const Owner& owner) { return is_known(owner, kind); };
  if (std::any_of(attribution.blocks.begin(), attribution.blocks.end(), known)) return {};
  return Error{
      fmt::format("{}: no {} is known of its blocks (`tidemark run` records what tells it, unless --attribute is off)",
                  store.path, name_in(kOwnerKindNames, kind))};
}

Result<OwnerGroups> OwnerGroups::create(const Store& store, const Attribution& attribution, OwnerKind kind) {
  OwnerGroups groups(attribution, kind);
  if (kind == OwnerKind::step) {
    const TrainingSteps steps = find_training_steps(store);
    if (steps.starts.empty()) {
      return Error{fmt::format("{}: no training steps detected; name the steps by marks", store.path)};
    }
    groups.step_of_block_ = steps_of_blocks(store, steps);
    return groups;
  }
  if (auto known = check_known(store, attribution, kind); !known) return known.error();
  if (kind == OwnerKind::module || kind == OwnerKind::layer) groups.lines_ = code_lines_of_blocks(store, attribution);
  if (kind != OwnerKind::layer) return groups;
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (const ModulePath& module : attribution.modules) {
    const auto [entry, is_new] =
        numbers.try_emplace(layer_of(module.path), static_cast<std::uint32_t>(groups.layers_.size()));
    if (is_new) groups.layers_.push_back(entry->first);
    groups.layer_of_module_.push_back(entry->second);
  }
  return groups;
}

std::uint32_t OwnerGroups::of(std::size_t block) const {
  if (kind_ == OwnerKind::step) return step_of_block_[block];
  const Owner& owner = attribution_->blocks[block];
  switch (kind_) {
    case OwnerKind::category:
      return static_cast<std::uint32_t>(owner.category);
    case OwnerKind::component:
      return static_cast<std::uint32_t>(owner.component);
    case OwnerKind::layer:
      if (owner.module.valid()) return layer_of_module_[owner.module.value];
      break;
    case OwnerKind::phase:
      return static_cast<std::uint32_t>(owner.phase);
    case OwnerKind::module:
    case OwnerKind::step:
      break;
  }
  if (owner.module.valid()) return owner.module.value;
  const std::uint32_t line = lines_.of_block[block];
  return line == CodeLines::kNone ? line : static_cast<std::uint32_t>(names_before_lines()) + line;
}

std::size_t OwnerGroups::names_before_lines() const {
  return kind_ == OwnerKind::layer ? layers_.size() : attribution_->modules.size();
}

BlockOwner OwnerGroups::owner(std::uint32_t group) const {
  const auto named = [&](std::string_view name) { return BlockOwner{kind_, std::string(name)}; };
  switch (kind_) {
    case OwnerKind::category:
      return named(name_in(kCategoryNames, static_cast<Category>(group)));
    case OwnerKind::component:
      return named(name_in(kComponentNames, static_cast<Component>(group)));
    case OwnerKind::phase:
      return named(name_in(kPhaseNames, static_cast<Phase>(group)));
    case OwnerKind::layer:
      if (group < layers_.size()) return named(layers_[group]);
      break;
    case OwnerKind::module:
      if (group < attribution_->modules.size()) return named(attribution_->modules[group].path);
      break;
    case OwnerKind::step:
      if (group != 0) return named(std::to_string(group - 1));
      return {kind_, std::nullopt};
  }
  const std::size_t line = group - names_before_lines();
  if (group != CodeLines::kNone && line < lines_.names.size()) return named(lines_.names[line]);
  return {kind_, std::nullopt};
}

CodeLines code_lines_of_blocks(const Store& store, const Attribution& attribution) {
  CodeLines lines;
  std::unordered_map<StackId, std::uint32_t> of_stack;
  std::unordered_map<std::string, std::uint32_t> numbers;
  const auto number_of = [&](StackId stack) {
    std::string name = line_of_stack(store.definitions, stack);
    if (name.empty()) return CodeLines::kNone;
    const auto [entry, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(lines.names.size()));
    if (is_new) lines.names.push_back(std::move(name));
    return entry->second;
  };
  lines.of_block.assign(store.blocks.count(), CodeLines::kNone);
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    const Owner& owner = attribution.blocks[block];
    if (owner.module.valid() || !is_of_pass(owner.phase)) continue;
    const StackId stack = owner.forward_stack.valid() ? owner.forward_stack : store.blocks.stack[block];
    const auto [entry, is_new] = of_stack.try_emplace(stack, CodeLines::kNone);
    if (is_new) entry->second = number_of(stack);
    lines.of_block[block] = entry->second;
  }
  return lines;
}

}  // namespace tidemark
