// tidemark interactive, tidemark top: the terminal program, or its prompt where there is no terminal.
#include <memory>

#include "cli/command.h"
#include "cli/watching.h"
#include "screen/program.h"
#include "screen/terminal/display.h"
#include "screen/view.h"

namespace tidemark::cli {
namespace {

struct InteractiveOptions : WatchOptions {
  std::size_t first_view = 0;
};

int run(const InteractiveOptions& options) {
  const auto monitor = monitor_options(options);
  if (!monitor) return fail(monitor.error().message);
  const screen::ProgramOptions program{.monitor = *monitor, .first_view = options.first_view};
  const auto code = screen::can_open_display() ? screen::run_full_screen(program) : screen::run_prompt(program);
  return code ? *code : fail(code.error().message);
}

std::function<int()> setup(CommandLine& app, std::size_t first_view, const std::string& name) {
  auto options = std::make_shared<InteractiveOptions>();
  options->first_view = first_view;
  add_watched(app, *options);
  app.add_option("--pid", options->pid, "Only this process and those below it")->type_name("PID");
  app.footer(
      "Needs a terminal of 72 columns and 18 rows, also over ssh; h lists the keys, q quits. Without a terminal it "
      "reads "
      "commands from stdin, one a line, and prints the answers: `help` lists them. Colours are left out where NO_COLOR "
      "is set, characters beyond ASCII where the locale is not one of UTF-8.\n\n"
      "Examples:\n"
      "  tidemark " +
      name +
      "\n"
      "  tidemark " +
      name +
      " --devices 0 1 --interval 0.1\n"
      "  printf 'processes rss\\nsave now.json\\n' | tidemark " +
      name);
  return [options] { return run(*options); };
}

}  // namespace

std::function<int()> setup_interactive(CommandLine& app) {
  return setup(app, screen::kDevicesView, "interactive");
}

std::function<int()> setup_top(CommandLine& app) {
  return setup(app, screen::kProcessesView, "top");
}

}  // namespace tidemark::cli
