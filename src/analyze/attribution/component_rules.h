// Maps modules to components of a model by rules in text files: component_rules.txt, and a user's own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "base/enum_names.h"
#include "base/result.h"

namespace tidemark {

/// Contents of component_rules.txt, built into the program.
extern const char kComponentRules[];

/// A module with its containing modules, as input of the rules.
struct ModuleDescription {
  std::string path;                 ///< dotted
  std::string type;                 ///< qualified name of its class
  std::vector<std::string> around;  ///< qualified names of the classes of the modules that it is in
};

class ComponentRules {
 public:
  /// Position of a rule. The lowest of several that apply decides.
  using RuleIndex = std::uint32_t;
  static constexpr RuleIndex kNoRule = 0xFFFFFFFF;

  /// Parses lines of three words: component, matched property, pattern. `name` of the text is used in error messages.
  static Result<ComponentRules> parse(std::string_view text, std::string_view name);
  /// The built-in ones.
  static const ComponentRules& built_in();
  /// These rules, then `others` if none of these applies.
  [[nodiscard]] ComponentRules before(const ComponentRules& others) const;

  [[nodiscard]] RuleIndex for_module(const ModuleDescription& module) const;
  /// Rule for a Python frame: its file below site-packages (installed_path(), else the whole path), its function.
  [[nodiscard]] RuleIndex for_frame(std::string_view file, std::string_view function) const;
  [[nodiscard]] Component component(RuleIndex rule) const {
    return rule < rules_.size() ? rules_[rule].component : Component::other;
  }

 private:
  enum class Subject : std::uint8_t { own_class, any_class, part, path, file, function };
  static constexpr EnumName<Subject> kSubjectNames[] = {{Subject::own_class, "class"}, {Subject::any_class, "in-class"},
                                                        {Subject::part, "part"},       {Subject::path, "path"},
                                                        {Subject::file, "file"},       {Subject::function, "function"}};
  struct Rule {
    Component component;
    Subject subject;
    std::string pattern;
  };
  std::vector<Rule> rules_;
};

}  // namespace tidemark
