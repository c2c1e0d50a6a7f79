// tidemark interactive, tidemark top: the terminal program, or its prompt without a terminal.
#include <memory>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/watching.h"
#include "query/words/printable.h"
#include "tui/program.h"
#include "tui/signals.h"
#include "tui/terminal/display.h"
#include "tui/view.h"

namespace tidemark::cli {
namespace {

struct InteractiveOptions : WatchOptions {
  std::size_t first_view = 0;
};

int run(const InteractiveOptions& options) {
  auto engine = engine_options(options);
  if (!engine) return fail(engine.error().message);
  tui::Notices notices;
  auto outputs = MonitorOutputs::start(
      options.outputs, [&notices](const std::string& text) { notices.add({.text = printable(text), .error = true}); });
  if (!outputs) return fail(outputs.error().message);
  if (const std::string url = (*outputs)->url(); !url.empty()) notices.add({.text = "metrics at " + url});
  engine->owners = (*outputs)->wants_recordings();
  tui::ProgramOptions program{.engine = *engine, .first_view = options.first_view, .notices = &notices};
  program.on_update = [&outputs](const MachineState& state, const std::vector<RiskChange>& changes,
                                 const MonitorOutputs::Recorded& recorded) {
    (*outputs)->update(state, changes, recorded);
  };
  const auto end = tui::can_open_display() ? tui::run_full_screen(program) : tui::run_prompt(program);
  outputs->reset();  // completes pending output
  while (const auto notice = notices.take()) say(notice->text);
  if (!end) return fail(end.error().message);
  if (end->signal) tui::die_of(*end->signal);
  return end->code;
}

std::function<int()> setup(CommandLine& app, std::size_t first_view, const std::string& name) {
  auto options = std::make_shared<InteractiveOptions>();
  options->first_view = first_view;
  add_watched(app, *options);
  app.add_option("--pid", options->pid, "This process and its children")->type_name("PID");
  add_outputs(app, options->outputs);
  app.footer(
      "Needs a terminal of 72 columns and 18 rows, also over ssh; h lists the keys, q quits. Without a terminal it "
      "reads commands from stdin, one a line, and prints the answers: `help` lists them. Who holds memory, and why, it "
      "shows of programs that are started with `tidemark run -- python train.py`. Colours are left out where NO_COLOR "
      "is set, characters beyond ASCII where the locale is not one of UTF-8.\n\n"
      "Examples:\n"
      "  tidemark " +
      name +
      "\n"
      "  tidemark " +
      name +
      " --devices 0 1 --interval 0.1\n"
      "  tidemark " +
      name +
      " --history gpu.db --on-critical 'mail -s \"GPU memory\" me'\n"
      "  printf 'processes rss\\nsave now.json\\n' | tidemark " +
      name);
  return [options] { return run(*options); };
}

}  // namespace

std::function<int()> setup_interactive(CommandLine& app) {
  return setup(app, tui::kDevicesView, "interactive");
}

std::function<int()> setup_top(CommandLine& app) {
  return setup(app, tui::kProcessesView, "top");
}

}  // namespace tidemark::cli
