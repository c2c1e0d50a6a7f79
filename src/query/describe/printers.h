// The types of results in other languages. All end with a newline.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "query/describe/types.h"

namespace tidemark {

/// A command with a description of its JSON.
struct DescribedCommand {
  std::string name{};
  std::string type{};             ///< the name of its result's ObjectType
  bool several = false;           ///< also for several recordings: {"recordings": [...]}
  bool in_python = false;         ///< the package has its classes
  std::string type_of_several{};  ///< if it is not an object of that type
  std::string title{};            ///< "plan --fit"; empty: the name
};

/// Types shared by commands.
struct SharedModule {
  std::string name;
  std::string doc;
};

/// All described results.
struct DescribedResults {
  ResultTypes types;
  std::vector<DescribedCommand> commands;  ///< in the order of the help
  std::vector<SharedModule> shared;

  /// Whether the package has types of this module.
  [[nodiscard]] bool in_python(const std::string& module) const;
  /// The module of Python that has the command's types.
  [[nodiscard]] static std::string module_of(const std::string& command);
};

/// A schema (draft 2020-12) of the commands' output; a document belongs to one of them.
[[nodiscard]] std::string json_schema(const DescribedResults& results, std::span<const DescribedCommand> commands);

/// The source of a module: frozen dataclasses.
[[nodiscard]] std::string python_module(const DescribedResults& results, const std::string& module);

/// Interfaces of these types and of the types they use.
[[nodiscard]] std::string typescript(const DescribedResults& results, std::span<const DescribedCommand> commands);

/// The keys of a command's object as a table, or the tables of all types of a shared module.
[[nodiscard]] std::string markdown(const DescribedResults& results, const std::string& module);

}  // namespace tidemark
