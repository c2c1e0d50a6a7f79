#include <array>

#include "cli/command.h"

namespace tidemark::cli {

std::function<int()> setup_run(CLI::App& app);
std::function<int()> setup_summary(CLI::App& app);
std::function<int()> setup_table(CLI::App& app);
std::function<int()> setup_tree(CLI::App& app);
std::function<int()> setup_timeline(CLI::App& app);
std::function<int()> setup_patterns(CLI::App& app);
std::function<int()> setup_temporary(CLI::App& app);
std::function<int()> setup_fragmentation(CLI::App& app);
std::function<int()> setup_leaks(CLI::App& app);
std::function<int()> setup_ledger(CLI::App& app);
std::function<int()> setup_explain(CLI::App& app);
std::function<int()> setup_compare(CLI::App& app);
std::function<int()> setup_report(CLI::App& app);
std::function<int()> setup_export(CLI::App& app);
std::function<int()> setup_devices(CLI::App& app);
std::function<int()> setup_doctor(CLI::App& app);
std::function<int()> setup_dump(CLI::App& app);
std::function<int()> setup_completion(CLI::App& app);

std::span<const Command> commands() {
  static constexpr std::array kCommands = {
      Command{"run", "Record", "Run a program and record its tensor memory", setup_run},
      Command{"summary", "Read", "Where the memory went: peaks, and the places that held it", setup_summary},
      Command{"table", "Read", "What was alive at a moment, by stack, size, stream, ...", setup_table},
      Command{"tree", "Read", "What was alive at a moment, from callers down to allocations", setup_tree},
      Command{"timeline", "Read", "Allocated and reserved memory over time; draws PNG and SVG", setup_timeline},
      Command{"temporary", "Read", "Short-lived allocations by stack, and the peak without them", setup_temporary},
      Command{"patterns", "Read", "What makes the peak larger than it had to be, by lifetimes", setup_patterns},
      Command{"fragmentation", "Read", "Memory held and not used: in what pieces, and who pins it",
              setup_fragmentation},
      Command{"leaks", "Read", "Does memory grow from step to step? Which stacks, and how fast", setup_leaks},
      Command{"ledger", "Read", "All memory of a GPU: PyTorch, libraries, context, other processes", setup_ledger},
      Command{"explain", "Read", "Why memory ran out: who held it, and what would have let it pass", setup_explain},
      Command{"compare", "Read", "What changed between two runs; fails when the peak grew too much", setup_compare},
      Command{"report", "Read", "One HTML page with all of it, to look at and to pass on", setup_report},
      Command{"export", "Read", "Files that other tools open: PyTorch, Perfetto, pprof, speedscope, CSV", setup_export},
      Command{"devices", "Machine", "The GPUs here, their memory now, and who uses it", setup_devices},
      Command{"doctor", "Machine", "What can be recorded here, and what to do where something cannot", setup_doctor},
      Command{"dump", "Debug", "Every record of a recording, one a line", setup_dump},
      Command{"completion", "Debug", "Print the completion script for a shell", setup_completion},
  };
  return kCommands;
}

}  // namespace tidemark::cli
