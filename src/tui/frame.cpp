#include "tui/frame.h"

#include <fmt/format.h>

#include <string>

#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/risks.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kBody = 2;  // row

std::string elapsed_text(std::uint64_t ns) {
  const std::uint64_t seconds = ns / 1'000'000'000;
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

void draw_bar_of_views(const Region& region, const Content& content, const State& state) {
  std::size_t x = 0;
  for (std::size_t n = 0; n < kViews; ++n) {
    const std::size_t begin = x;
    x = region.print(x, 0, fmt::format(" {} ", n + 1), Role::key);
    x = region.print(x, 0, fmt::format("{} ", views()[n].title), Role::heading);
    if (n == state.view) region.part(begin, 0, x - begin, 1).select_row(0);
  }
  const std::string time = elapsed_text(content.machine.now_ns);
  region.print_right(region.width(), 0, state.paused ? "PAUSED" : time, {state.paused ? Role::warning : Role::quiet});
}

// One line on missing data; empty if the data is complete.
std::string notice_of(const Content& content) {
  const MachineState& machine = content.machine;
  if (machine.devices_known && machine.is_old(machine.latest_reading_ns, content.interval_ns)) {
    const auto silence = static_cast<double>(machine.now_ns - machine.latest_reading_ns);
    return fmt::format("no answer from the driver for {}: values are old", span_text(silence / kNanosecondsPerSecond));
  }
  if (!machine.problems.empty()) return printable(machine.problems.front());
  if (!machine.missing_keys.empty()) return "no such device: " + printable(machine.missing_keys.front());
  switch (machine.watched_pid) {
    case WatchedPid::ended:
      return "the process has ended";
    case WatchedPid::not_listed:
      return "no device lists the process: it has no memory of a GPU";
    case WatchedPid::hidden:
      return "the driver's PIDs are those of another namespace: the process may be among them";
    case WatchedPid::none:
    case WatchedPid::running:
      break;
  }
  return machine.no_gpu ? "no GPU found: host memory only" : "";
}

void draw_bottom(const Region& region, const State& state) {
  if (state.file_name) {
    // For a long name, the end is visible, where text is typed.
    const std::string prompt = "Save the report as: ";
    std::string name = printable(*state.file_name);
    const std::size_t room = region.width() - prompt.size() - 1;
    while (display_width(name) > room) name.erase(0, 1);
    const std::size_t x = region.print(0, 0, prompt, Role::key);
    region.part(region.print(x, 0, name), 0, 1, 1).select_row(0);
    return;
  }
  if (!state.message.text.empty()) {
    const Role role = state.message.error ? Role::critical : Role::good;
    region.print(0, 0, fit(state.message.text, region.width()), role);
    return;
  }
  std::string keys = views()[state.view].keys;
  if (!keys.empty()) keys += "  ";
  region.print(0, 0, keys + "m mark  w save  p pause  h help  q quit", Role::quiet);
}

struct HelpLine {
  const char* key;
  const char* text;
};
constexpr HelpLine kHelp[] = {{"1 to 6, Tab", "another view"},
                              {"up, down, Page, Home, End", "select a row, scroll"},
                              {"left, right", "the time span (charts); the process (holders)"},
                              {"s", "sort; the scale (charts); stack, module or category (holders)"},
                              {"r", "write what the flight recorder of the selected process holds to a file"},
                              {"m", "mark this moment: in charts, and in the saved report"},
                              {"w", "save the report (JSON) to a file"},
                              {"p", "pause what is shown; watching goes on"},
                              {"Ctrl-L", "draw the screen anew"},
                              {"h, ?", "this help, and back"},
                              {"q, Ctrl-C", "quit"}};

void draw_help(const Region& region) {
  constexpr std::size_t kTextColumn = 28;
  region.print(0, 0, "Keys", Role::heading);
  std::size_t y = 1;
  for (const HelpLine& line : kHelp) {
    region.print(2, y, line.key, Role::key);
    const Region text = region.part(kTextColumn, y, region.width(), region.height());
    y += draw_paragraph(text, 0, line.text);
  }
}

void draw_too_small(const Region& region) {
  const std::string text = fmt::format("This terminal has {} columns and {} rows; {} and {} are needed. q quits.",
                                       region.width(), region.height(), kMinWidth, kMinHeight);
  draw_paragraph(region, 0, text, Role::warning);
}

}  // namespace

void draw_frame(Canvas& canvas, const Content& content, const State& state) {
  const Region region(canvas);
  if (region.width() < kMinWidth || region.height() < kMinHeight) return draw_too_small(region);
  draw_bar_of_views(region, content, state);
  region.print(0, 1, fit(notice_of(content), region.width()), Role::warning);
  const Region body = region.part(0, kBody, region.width(), region.height() - kBody - 1);
  if (state.help) {
    draw_help(body);
  } else {
    views()[state.view].draw(body, content, state.views[state.view]);
  }
  draw_bottom(region.below(region.height() - 1), state);
}

}  // namespace tidemark::tui
