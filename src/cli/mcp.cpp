// tidemark mcp: lets assistants query recordings. Starts the server, which is Python: python/tidemark/mcp.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/package_command.h"

namespace tidemark::cli {
namespace {

struct McpOptions {
  std::string folder = ".";
  bool allow_plan = false;
  std::string python;
  std::string plan_python;
};

int run_server(const McpOptions& options) {
  std::vector<std::string> words;
  if (options.allow_plan) words.emplace_back("--allow-plan");
  if (!options.plan_python.empty()) words.push_back("--plan-python=" + options.plan_python);
  words.insert(words.end(), {"--", options.folder});
  return run_package_command(options.python, "tidemark.mcp", words);
}

}  // namespace

std::function<int()> setup_mcp(CommandLine& app) {
  auto options = std::make_shared<McpOptions>();
  app.add_option("FOLDER", options->folder, "Folder whose recordings and snapshots can be asked about");
  app.add_flag("--allow-plan", options->allow_plan,
               "Also offer the tool `plan`, which runs a Python program of the folder on a GPU that is not there");
  app.add_option("--python", options->python, "Interpreter that has Tidemark's package and the package mcp")
      ->type_name("FILE")
      ->show_default("the one of the package that `tidemark` belongs to, otherwise python3");
  app.add_option("--plan-python", options->plan_python, "Interpreter that runs the programs of `plan`")
      ->type_name("FILE")
      ->show_default("that of the server");
  app.footer(
      "A server of the Model Context Protocol on standard input and output: an assistant starts it, and asks for "
      "summaries, explanations, leaks, tables, comparisons and simulations of the recordings in the folder. Answers "
      "are "
      "the JSON of the commands, 64 KiB at most, and say what they left out. No file outside the folder is read, and "
      "no "
      "program is started without --allow-plan. The server needs the Python package mcp: "
      "`pip install '.[mcp]'` in a clone of Tidemark.\n\n"
      "Examples:\n"
      "  tidemark mcp recordings\n"
      "  claude mcp add tidemark -- tidemark mcp /home/me/recordings\n"
      "  tidemark mcp --allow-plan project");
  return [options] { return run_server(*options); };
}

}  // namespace tidemark::cli
