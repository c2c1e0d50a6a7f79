#include <cstddef>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "query/analyses/analysis.h"
#include "query/words/printable.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t kMaxErrorColumns = 2000;

}  // namespace

std::function<int()> setup_analysis(const Analysis& analysis, CommandLine& app);

// A command NAME is the function setup_NAME() of cli/NAME.cpp; the macro declares and adds it.
#define ADD_COMMAND(name, group, description)                 \
  extern std::function<int()> setup_##name(CommandLine& app); \
  list.push_back({#name, group, description, setup_##name})

std::span<const Command> commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> list;
    ADD_COMMAND(run, "Record", "Run a program and record its tensor memory");
    ADD_COMMAND(plan, "Record", "Memory that a program needs, on a simulated GPU; which GPUs it fits");
    ADD_COMMAND(sweep, "Record", "Memory for combinations of arguments, and which of them fit");
    ADD_COMMAND(preflight, "Record", "Run a program with its longest batches first, and see whether they fit");
    for (const Analysis& analysis : analyses()) {
      list.push_back({analysis.name, "Read", analysis.help,
                      [&analysis](CommandLine& app) { return setup_analysis(analysis, app); }});
    }
    ADD_COMMAND(compare, "Read", "Differences between two runs; can fail when the peak grows");
    ADD_COMMAND(simulate, "Read", "Replay a recording with other allocator settings");
    ADD_COMMAND(restart, "Read", "Whether a job will run out of memory again, when, and what to change");
    ADD_COMMAND(report, "Read", "One offline HTML page with all results");
    ADD_COMMAND(export, "Read", "Export to PyTorch, Perfetto, pprof, speedscope, CSV or Parquet");
    ADD_COMMAND(model, "Read", "Size of a model's safetensors files, by module, layer and type");
    ADD_COMMAND(mcp, "Read", "Let an assistant ask about recordings (Model Context Protocol)");
    ADD_COMMAND(interactive, "Watch", "Full-screen view of devices, processes, charts and findings");
    ADD_COMMAND(top, "Watch", "Like `interactive`, starting with the processes");
    ADD_COMMAND(profile, "Watch", "Memory of devices and processes over some time");
    ADD_COMMAND(oom, "Watch", "Whether a device or the host will run out of memory, and when");
    ADD_COMMAND(leak, "Watch", "Memory that grows, and how fast, while a job runs");
    ADD_COMMAND(fragment, "Watch", "Fragmentation of recorded processes while they run");
    ADD_COMMAND(exporter, "Watch", "Serve the machine's metrics to Prometheus or push them over OTLP");
    ADD_COMMAND(history, "Watch", "Past samples from a monitor's --history file");
    ADD_COMMAND(distributed, "Watch", "Memory and risk of a job on several machines, and ranks that differ");
    ADD_COMMAND(job, "Watch", "The report of a job that `tidemark distributed` is watching");
    ADD_COMMAND(devices, "Machine", "GPUs of this machine, their memory and processes");
    ADD_COMMAND(doctor, "Machine", "Check what can be recorded on this machine");
    ADD_COMMAND(schema, "Other", "JSON Schema, types or table of keys of a command's JSON");
    ADD_COMMAND(dump, "Other", "Print every record of a recording, one per line");
    ADD_COMMAND(completion, "Other", "Print the completion script for a shell");
    ADD_COMMAND(help, "Other", "Print the help of a command");
    ADD_COMMAND(recorder, "", "Record the program that starts this one");
    return list;
  }();
  return kCommands;
}

int fail(const std::string& message) {
  say(shown(message, kMaxErrorColumns));  // names in it may come from a file
  return kError;
}

int print(const std::string& bytes) {
  auto written = write_stdout(bytes);
  if (written) written = flush_stdout();
  return written ? kOk : fail(written.error().message);
}

}  // namespace tidemark::cli
