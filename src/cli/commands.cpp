#include <utility>
#include <vector>

#include "cli/command.h"
#include "report/analyses/analysis.h"

namespace tidemark::cli {

std::function<int()> setup_analysis(const Analysis& analysis, CommandLine& app);

// A command NAME is the function setup_NAME() of cli/NAME.cpp; the macro declares and adds it.
#define ADD_COMMAND(name, group, description)                 \
  extern std::function<int()> setup_##name(CommandLine& app); \
  list.push_back({#name, group, description, setup_##name})

std::span<const Command> commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> list;
    ADD_COMMAND(run, "Record", "Run a program and record its tensor memory");
    for (const Analysis& analysis : analyses()) {
      list.push_back({analysis.name, "Read", analysis.help,
                      [&analysis](CommandLine& app) { return setup_analysis(analysis, app); }});
    }
    ADD_COMMAND(compare, "Read", "What changed between two runs; fails when the peak grew too much");
    ADD_COMMAND(report, "Read", "One HTML page with all of it, to look at and to pass on");
    ADD_COMMAND(export, "Read", "Files that other tools open: PyTorch, Perfetto, pprof, speedscope, CSV");
    ADD_COMMAND(devices, "Machine", "The GPUs here, their memory now, and who uses it");
    ADD_COMMAND(doctor, "Machine", "What can be recorded here, and what to do where something cannot");
    ADD_COMMAND(dump, "Debug", "Every record of a recording, one a line");
    ADD_COMMAND(completion, "Debug", "Print the completion script for a shell");
    return list;
  }();
  return kCommands;
}

}  // namespace tidemark::cli
