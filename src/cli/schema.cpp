// tidemark schema: describes the JSON of commands, as a schema or as types of a language.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "query/results/results.h"

namespace tidemark::cli {
namespace {

struct SchemaOptions {
  std::string command;
  std::string to = "json";
  bool list = false;
};

std::vector<std::string> described_names() {
  std::vector<std::string> names;
  for (const DescribedCommand& command : described_results().commands) names.push_back(command.name);
  for (const SharedModule& shared : described_results().shared) names.push_back(shared.name);
  return names;
}

std::string list_text() {
  std::string text;
  const auto add = [&text](const std::string& name, const char* what) {
    const bool in_python = described_results().in_python(DescribedResults::module_of(name));
    text += fmt::format("{} {}{}\n", name, what, in_python ? " python" : "");
  };
  for (const DescribedCommand& command : described_results().commands) add(command.name, "command");
  for (const SharedModule& shared : described_results().shared) add(shared.name, "shared");
  return text;
}

int run(const SchemaOptions& options) {
  const DescribedResults& results = described_results();
  if (options.list) return print(list_text());
  std::vector<DescribedCommand> commands = results.commands;
  if (!options.command.empty()) {
    std::erase_if(commands, [&](const DescribedCommand& command) { return command.name != options.command; });
  }
  if (options.to == "python" || options.to == "markdown") {
    std::string text;
    for (const std::string& name : described_names()) {
      if (!options.command.empty() && name != options.command) continue;
      const std::string module = DescribedResults::module_of(name);
      if (!text.empty()) text += "\n\n";
      text += options.to == "python" ? python_module(results, module) : markdown(results, module);
    }
    return print(text);
  }
  if (commands.empty()) {
    return fail(fmt::format("{}: types that commands share have no {} of their own", options.command,
                            options.to == "json" ? "schema" : "TypeScript"));
  }
  return print(options.to == "json" ? json_schema(results, commands) : typescript(results, commands));
}

}  // namespace

std::function<int()> setup_schema(CommandLine& app) {
  auto options = std::make_shared<SchemaOptions>();
  app.add_option("COMMAND", options->command, "Command whose JSON it is about; default: all that are described")
      ->one_of(fmt::format("{}", fmt::join(described_names(), "|")));
  app.add_option("--to", options->to,
                 "What it is written as: a JSON Schema (draft 2020-12), types, or a table of the keys")
      ->one_of("json|python|typescript|markdown");
  app.add_flag("-l,--list", options->list,
               "List what is described: commands and what they share, and which of these the Python package has");
  app.footer(
      "The schemas of all commands are installed with the program, in share/tidemark/schema.\n\n"
      "Examples:\n"
      "  tidemark schema leaks\n"
      "  tidemark schema leaks | check-jsonschema --schemafile /dev/stdin leaks.json\n"
      "  tidemark schema --to typescript > results.d.ts\n"
      "  tidemark schema leaks --to markdown");
  return [options] { return run(*options); };
}

}  // namespace tidemark::cli
