#include "analyze/attribution/component_rules.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "analyze/common/stack_matching.h"

namespace tidemark {
namespace {

constexpr std::string_view kBlank = " \t\r";

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool has_part(const std::string& pattern, const std::string& path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (matches(pattern, path.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

// The words of a line up to a comment.
std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(kBlank); begin != std::string_view::npos;
       begin = line.find_first_not_of(kBlank, begin)) {
    const std::size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

template <typename Names>
std::string names_listed(const Names& names) {
  std::string text;
  for (const auto& entry : names) {
    if (!text.empty()) text += ", ";
    text += entry.name;
  }
  return text;
}

}  // namespace

Result<ComponentRules> ComponentRules::parse(std::string_view text, std::string_view name) {
  ComponentRules rules;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    if (words.size() != 3) {
      return Error{fmt::format("{}:{}: expected three words, such as 'attention in-class *Attention'", name, number)};
    }
    const auto component = value_in(kComponentNames, words[0]);
    if (!component) {
      return Error{fmt::format("{}:{}: no component '{}' (available: {})", name, number, words[0],
                               names_listed(kComponentNames))};
    }
    const auto subject = value_in(kSubjectNames, words[1]);
    if (!subject) {
      return Error{fmt::format("{}:{}: '{}' is nothing that a component is known by (available: {})", name, number,
                               words[1], names_listed(kSubjectNames))};
    }
    rules.rules_.push_back({*component, *subject, std::string(words[2])});
  }
  return rules;
}

const ComponentRules& ComponentRules::built_in() {
  static const ComponentRules rules = [] {
    Result<ComponentRules> parsed = parse(kComponentRules, "component_rules.txt");
    return parsed.ok() ? std::move(*parsed) : ComponentRules();  // a test reads the file
  }();
  return rules;
}

ComponentRules ComponentRules::before(const ComponentRules& others) const {
  ComponentRules all = *this;
  all.rules_.insert(all.rules_.end(), others.rules_.begin(), others.rules_.end());
  return all;
}

ComponentRules::RuleIndex ComponentRules::for_module(const ModuleDescription& module) const {
  const auto applies = [&](const Rule& rule) {
    switch (rule.subject) {
      case Subject::any_class:
        if (std::any_of(module.around.begin(), module.around.end(),
                        [&](const std::string& type) { return matches(rule.pattern, type); })) {
          return true;
        }
        return matches(rule.pattern, module.type);
      case Subject::own_class:
        return matches(rule.pattern, module.type);
      case Subject::part:
        return has_part(rule.pattern, module.path);
      case Subject::path:
        return matches(rule.pattern, module.path);
      case Subject::file:
      case Subject::function:
        break;
    }
    return false;
  };
  const auto found = std::find_if(rules_.begin(), rules_.end(), applies);
  return found == rules_.end() ? kNoRule : static_cast<RuleIndex>(found - rules_.begin());
}

ComponentRules::RuleIndex ComponentRules::for_frame(std::string_view file, std::string_view function) const {
  const std::string path(file);
  const std::string name(plain_name(function));
  const auto applies = [&](const Rule& rule) {
    return (rule.subject == Subject::file && matches(rule.pattern, path)) ||
           (rule.subject == Subject::function && matches(rule.pattern, name));
  };
  const auto found = std::find_if(rules_.begin(), rules_.end(), applies);
  return found == rules_.end() ? kNoRule : static_cast<RuleIndex>(found - rules_.begin());
}

}  // namespace tidemark
