// Without a terminal: commands are lines of stdin, answers are text.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/standard_streams.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "report/common/terminal.h"
#include "report/common/text_parts.h"
#include "tui/program.h"
#include "tui/session.h"
#include "tui/signals.h"

namespace tidemark::tui {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenReadings = std::chrono::milliseconds(100);
constexpr std::chrono::seconds kPatience = std::chrono::seconds(10);  // for drivers that do not answer
constexpr std::size_t kLongestLine = 65536;
constexpr std::size_t kNarrowest = 72;
constexpr std::size_t kRowsBeside = 30;  // of a view's text, besides its rows
constexpr std::size_t kMaxRows = 5000;
constexpr std::size_t kRowsOfRow = 8;

class Prompt {
 public:
  explicit Prompt(const ProgramOptions& options)
      : notices_(options.notices),
        session_(options),
        first_view_(options.first_view),
        asked_(isatty(STDIN_FILENO) != 0) {
    session_.start();
  }

  Result<ProgramEnd> run() {
    if (asked_) print("tidemark: `help` lists the commands.\n");
    while (!done_ && written_ && !wrong_choice_) {
      const std::optional<std::string> line = next_line();
      if (!line) break;
      obey(*line);
    }
    // Without a terminal and without a command, its first view is the answer.
    if (!asked_ && !obeyed_ && !signal_ && !wrong_choice_) {
      show_view(std::string(views()[first_view_].name), "");
      show_next();
    }
    if (wrong_choice_) return *wrong_choice_;
    if (!written_) return written_.error();
    return ProgramEnd{.code = failed_ ? 2 : 0, .signal = signal_};
  }

 private:
  // Monitoring continues while nothing is typed. nullopt at the end of stdin, and after a signal.
  std::optional<std::string> next_line() {
    if (asked_) print("> ");
    for (;;) {
      if (const std::size_t end = typed_.find('\n'); end != std::string::npos) {
        std::string line = typed_.substr(0, end);
        typed_.erase(0, end + 1);
        return line;
      }
      if (ended_ || typed_.size() > kLongestLine)
        return typed_.empty() ? std::nullopt : std::optional(std::exchange(typed_, ""));
      wait(kBetweenReadings, true);
      if (signal_ || wrong_choice_) return std::nullopt;
    }
  }

  // Waits for time to pass, a signal, or input; then takes new data.
  void wait(std::chrono::milliseconds time, bool reads) {
    std::array<pollfd, 2> inputs = {pollfd{signals_.descriptor(), POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    const bool ready = ::poll(inputs.data(), reads ? 2 : 1, static_cast<int>(time.count())) > 0;
    while (const std::optional<int> signal = signals_.take()) {
      if (*signal != SIGWINCH && *signal != SIGCONT) signal_ = signal;
    }
    if (ready && reads && inputs[1].revents != 0) read_some();
    session_.update();
    wrong_choice_ = session_.wrong_choice();
    while (notices_ != nullptr) {
      const std::optional<Message> notice = notices_->take();
      if (!notice) return;
      say(notice->text);
    }
  }

  void read_some() {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) typed_.append(bytes.data(), static_cast<std::size_t>(got));
    ended_ = got <= 0;
  }

  void obey(const std::string& line) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    const std::string command = line.substr(begin, end - begin);
    std::string argument = line.substr(std::min(line.find_first_not_of(" \t\r", end), line.size()));
    argument.erase(argument.find_last_not_of(" \t\r") + 1);
    if (command.empty()) return;
    obeyed_ = true;
    if (command == "quit" || command == "exit" || command == "q") {
      done_ = true;
    } else if (command == "help") {
      print_help();
    } else if (command == "mark") {
      say_message(session_.mark(argument));
    } else if (command == "save") {
      wait_until([&] { return session_.complete(); });
      say_message(argument.empty() ? Message{"save: the name of a file is missing", true} : session_.save(argument));
    } else if (command == "record") {
      record(argument);
    } else {
      show_view(command, argument);
    }
  }

  void record(const std::string& argument) {
    const auto pid = parse_number<std::int64_t>(argument);
    if (!pid) return say_message({"record: the PID of a process is missing", true});
    say_message(session_.record(pid));
  }

  void show_view(const std::string& command, const std::string& argument) {
    const auto view =
        std::find_if(views().begin(), views().end(), [&](const View& each) { return each.name == command; });
    if (view == views().end()) {
      return say_message({fmt::format("unknown command '{}'; `help` lists the commands", shown(command)), true});
    }
    ViewState place{.selected = kNoRow};
    if (!argument.empty()) {
      const auto order = std::find(view->orders.begin(), view->orders.end(), std::string_view(argument));
      if (order == view->orders.end()) {
        return say_message(
            {fmt::format("{}: '{}' is not one of: {}", command, shown(argument), fmt::join(view->orders, ", ")), true});
      }
      place.order = static_cast<std::size_t>(order - view->orders.begin());
    }
    session_.set_recordings_enabled(view->of_recordings);
    wait_until([&] { return session_.complete() && (!view->of_recordings || session_.has_recordings()); });
    const Content content = session_.content();
    const std::size_t rows = std::min(kRowsBeside + kRowsOfRow * view->rows(content, place), kMaxRows);
    Canvas canvas(std::max(terminal_width(STDOUT_FILENO).value_or(100), kNarrowest), rows);
    view->draw(Region(canvas), content, place);
    std::string text = canvas.text();
    text.erase(text.find_last_not_of('\n') + 1);
    print(text + "\n");
  }

  // Growth takes longer to see than the one answer of this view.
  void show_next() {
    const auto& processes = session_.content().machine.processes;
    const auto job = std::find_if(processes.begin(), processes.end(), [](const WatchedProcess& process) {
      return process.kind == ProcessKind::job && !process.ended;
    });
    if (job == processes.end()) return;
    print(next_command(fmt::format("tidemark leak --enable-tracking --pid {}", job->pid),
                       "whether its memory grows, and what holds it", Terminal()));
  }

  // Scripts query at once, and need values.
  template <typename Condition>
  void wait_until(Condition condition) {
    const Clock::time_point until = Clock::now() + kPatience;
    while (!condition() && Clock::now() < until && !signal_ && !wrong_choice_) wait(kBetweenReadings / 10, false);
  }

  void print_help() {
    std::string text;
    for (const View& view : views()) {
      text += fmt::format("{:<12}{}\n", view.name,
                          view.orders.empty() ? std::string() : fmt::format("[{}]", fmt::join(view.orders, "|")));
    }
    print(text +
          "mark        [NAME]  note this moment in the saved report\n"
          "save        FILE    the report as JSON\n"
          "record      PID     what its flight recorder holds, to a file\n"
          "help\n"
          "quit\n");
  }

  void say_message(const Message& message) {
    if (!message.error) return print(message.text + "\n");
    failed_ = true;
    say(message.text);
  }

  void print(const std::string& text) {
    if (wrong_choice_) return;
    if (written_) written_ = write_stdout(text);
    if (written_) written_ = flush_stdout();
  }

  Signals signals_;  // before threads are started
  Notices* notices_;
  Session session_;
  std::size_t first_view_;
  std::optional<int> signal_;
  std::optional<Error> wrong_choice_;
  bool asked_;  // whether a user at a terminal typed it
  std::string typed_;
  bool ended_ = false;
  bool obeyed_ = false;  // a command was given
  bool done_ = false;
  bool failed_ = false;
  Result<void> written_;
};

}  // namespace

Result<ProgramEnd> run_prompt(const ProgramOptions& options) {
  return Prompt(options).run();
}

}  // namespace tidemark::tui
