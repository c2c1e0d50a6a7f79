// Keys, signals and new readings, in a single loop that never waits for anything else.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "tui/frame.h"
#include "tui/process_rows.h"
#include "tui/program.h"
#include "tui/session.h"
#include "tui/signals.h"
#include "tui/terminal/display.h"

namespace tidemark::tui {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kReadings = std::chrono::milliseconds(250);  // how often new ones are looked at
constexpr std::chrono::milliseconds kBetweenDrawings = std::chrono::milliseconds(100);
constexpr std::chrono::seconds kNotice = std::chrono::seconds(3);  // how long one stays before the next
constexpr std::chrono::milliseconds kFirstReadings = std::chrono::milliseconds(10);  // shown as they come

class FullScreen {
 public:
  FullScreen(Display& display, Signals& signals, const ProgramOptions& options)
      : display_(display), signals_(signals), notices_(options.notices), session_(options) {
    state_.view = options.first_view;
  }

  /// The signal that ended it; nullopt if a key did. Fails if selected devices do not exist.
  Result<std::optional<int>> run() {
    session_.start();
    draw();
    Clock::time_point next_readings = Clock::now();
    while (!done_) {
      const bool first = session_.is_starting();
      const Clock::time_point next_drawing = drawn_ + (first ? kFirstReadings : kBetweenDrawings);
      if (!wait_until(changed_ ? std::min(next_readings, next_drawing) : next_readings)) break;
      take_signals();
      take_keys();
      take_notices();
      if (Clock::now() >= next_readings) {
        next_readings = Clock::now() + (first ? kFirstReadings : kReadings);
        // The clock at the top continues while a driver does not respond.
        const std::uint64_t second = session_.content().machine.now_ns / 1'000'000'000;
        changed_ |= session_.update() || session_.content().machine.now_ns / 1'000'000'000 != second;
      }
      if (auto wrong = session_.wrong_choice()) return *std::move(wrong);
      if (changed_ && Clock::now() >= next_drawing) draw();
    }
    return signal_;
  }

 private:
  // False if keys cannot be read any more.
  bool wait_until(Clock::time_point until) {
    std::array<pollfd, 2> inputs = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.descriptor(), POLLIN, 0}};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    ::poll(inputs.data(), inputs.size(), static_cast<int>(std::clamp<std::int64_t>(wait, 0, kReadings.count())));
    return (inputs[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
  }

  void take_signals() {
    while (const std::optional<int> signal = signals_.take()) {
      changed_ = true;
      if (*signal == SIGWINCH) {
        display_.resize();
      } else if (*signal == SIGCONT) {
        display_.redraw();
      } else {
        signal_ = signal;
        done_ = true;
      }
    }
  }

  void take_keys() {
    while (const std::optional<Key> key = display_.read_key()) {
      changed_ = true;
      answer(handle_key(state_, session_.content(), *key));
    }
    session_.set_recordings_enabled(views()[state_.view].of_recordings);
  }

  void take_notices() {
    if (notices_ == nullptr || state_.file_name || Clock::now() < next_notice_) return;
    if (std::optional<Message> notice = notices_->take()) {
      next_notice_ = Clock::now() + kNotice;
      state_.message = std::move(*notice);
      changed_ = true;
    }
  }

  void answer(Request request) {
    switch (request) {
      case Request::none:
        return;
      case Request::quit:
        done_ = true;
        return;
      case Request::redraw:
        return display_.redraw();
      case Request::pause:
        return session_.hold(state_.paused);
      case Request::mark:
        state_.message = session_.mark();
        return;
      case Request::record:
        state_.message = session_.record(selected_process());
        return;
      case Request::save:
        state_.message = session_.save(*state_.file_name);
        state_.file_name.reset();
        return;
    }
  }

  [[nodiscard]] std::optional<std::int64_t> selected_process() const {
    const ViewState& place = state_.views[kProcessesView];
    const auto rows = process_rows(session_.content().machine, static_cast<ProcessOrder>(place.order));
    if (state_.view != kProcessesView || rows.empty()) return std::nullopt;
    return rows[row_of(place.selected, rows.size())].process->pid;
  }

  void draw() {
    Canvas canvas = display_.canvas();
    draw_frame(canvas, session_.content(), state_);
    display_.show(canvas);
    drawn_ = Clock::now();
    changed_ = false;
  }

  Display& display_;
  Signals& signals_;
  Notices* notices_;
  Session session_;
  State state_;
  Clock::time_point drawn_;
  Clock::time_point next_notice_;
  bool changed_ = false;
  bool done_ = false;
  std::optional<int> signal_;
};

}  // namespace

Result<ProgramEnd> run_full_screen(const ProgramOptions& options) {
  Signals signals;
  auto display = Display::open();
  if (!display) return display.error();
  auto ended = FullScreen(**display, signals, options).run();
  if (!ended) return ended.error();
  return ProgramEnd{.code = 0, .signal = *ended};
}

}  // namespace tidemark::tui
