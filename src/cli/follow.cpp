#include "cli/follow.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/standard_streams.h"
#include "cli/reading.h"
#include "collect/recorder/live/kept_folder.h"
#include "collect/recorder/live/live_recordings.h"
#include "follow/followed_recording.h"
#include "query/recording.h"
#include "report/common/follow.h"
#include "report/formats.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t kUsualRows = 24;
// Disables wrapping: wide lines end at the edge, so that every line is one row.
constexpr std::string_view kNoWrap = "\x1b[?7l";
constexpr std::string_view kWrap = "\x1b[?7h";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

bool can_move_the_cursor() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

Result<void> write(const std::string& bytes) {
  auto written = write_stdout(bytes);
  return written ? flush_stdout() : written;
}

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// How often the file is read: as often as a recorder writes for a reader.
constexpr std::chrono::milliseconds kLook = 100ms;
constexpr std::chrono::milliseconds kPatienceForLater = 1s;
// If an analysis takes long because the recording is long, it is repeated less often.
constexpr int kMaxOfTheTime = 4;  // a quarter of the time is spent on analyses

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): signals have no other way
volatile std::sig_atomic_t interrupted = 0;

// The second one ends the program.
void stop_at_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

/// A recording to follow, and the recorder that writes it, if it is known.
struct Target {
  std::string path;
  std::uint64_t pid = 0;  ///< the process, whose later files may follow; 0: this file only
  std::optional<LiveRecorder> recorder;
};

std::optional<Target> target_among(std::vector<LiveRecorder>& recorders,
                                   const std::function<bool(const LiveRecording&)>& is_wanted) {
  for (LiveRecorder& recorder : recorders) {
    for (const LiveRecording& recording : recorder.recordings()) {
      if (!is_wanted(recording)) continue;
      Target target{recording.path, static_cast<std::uint64_t>(recording.pid), {}};
      target.recorder = std::move(recorder);
      return target;
    }
  }
  return std::nullopt;
}

std::string what_there_is(const std::vector<LiveRecorder>& recorders) {
  std::vector<LiveRecording> all;
  for (const LiveRecorder& recorder : recorders) {
    all.insert(all.end(), recorder.recordings().begin(), recorder.recordings().end());
  }
  return live_recordings_text(all);
}

// The kept part of "run.tide" is in "run.tide.kept" until the first dump; both names refer to it.
bool is_kept_of(const std::string& file, const LiveRecording& recording) {
  const auto segment = kept_segment(recording.path);
  std::error_code error;
  return segment && (std::filesystem::equivalent(segment->folder, file, error) ||
                     (!std::filesystem::exists(file, error) &&
                      std::filesystem::equivalent(segment->folder, file + ".kept", error)));
}

Result<Target> find_target(const FollowArguments& arguments, const std::vector<std::string>& files) {
  if (files.size() > 1) return Error{"--follow takes one recording; follow each in a terminal of its own"};
  if (!files.empty() && arguments.pid != 0) return Error{"name a file or a process (--pid), not both"};
  std::vector<LiveRecorder> recorders = find_live_recorders();
  const auto count = [&](const auto& is_wanted) {
    std::ptrdiff_t found = 0;
    for (const LiveRecorder& recorder : recorders) {
      found += std::count_if(recorder.recordings().begin(), recorder.recordings().end(), is_wanted);
    }
    return found;
  };
  const auto is_kept = [&](const LiveRecording& recording) { return is_kept_of(files.front(), recording); };
  if (const auto kept = files.empty() ? 0 : count(is_kept); kept > 0) {
    if (kept == 1) return std::move(*target_among(recorders, is_kept));
    return Error{
        fmt::format("{}: of several processes; choose one with --pid; {}", files.front(), what_there_is(recorders))};
  }
  if (!files.empty()) {
    if (auto status = check_recording_path(files.front()); !status) return status.error();
    auto found = target_among(recorders, [&](const LiveRecording& recording) {
      std::error_code error;
      return std::filesystem::equivalent(recording.path, files.front(), error);
    });
    if (!found) return Target{files.front(), 0, {}};
    return Target{files.front(), 0, std::move(found->recorder)};
  }
  if (arguments.pid != 0) {
    auto found = target_among(recorders, [&](const LiveRecording& recording) {
      return static_cast<std::uint64_t>(recording.pid) == arguments.pid;
    });
    if (found) return std::move(*found);
    return Error{fmt::format("process {} is not being recorded: {}", arguments.pid, what_there_is(recorders))};
  }
  const auto any = [](const LiveRecording&) { return true; };
  if (const auto all = count(any); all != 1) {
    return Error{fmt::format("{}; {}", all == 0 ? "nothing to follow" : "choose one with --pid or name its file",
                             what_there_is(recorders))};
  }
  return std::move(*target_among(recorders, any));
}

class Following {
 public:
  Following(const FollowedAnalysis& what, Target target, std::chrono::milliseconds interval)
      : what_(what), target_(std::move(target)), interval_(interval) {}

  Result<void> run() {
    do {
      auto opened = FollowedRecording::open(target_.path, keeps_blocks());
      if (!opened) return opened.error();
      recording_ = std::move(*opened);
      shown_offset_ = 0;
      if (auto followed = follow_file(); !followed) return followed;
    } while (interrupted == 0 && find_later_file());
    return {};
  }

 private:
  /// Analyses that read blocks of files, and options that need them.
  [[nodiscard]] bool keeps_blocks() const {
    const AnalysisOptions& chosen = what_.chosen;
    const bool lists_blocks = what_.analysis.filters_lists && chosen.word("by") != "call-site";
    return what_.analysis.needs_blocks || lists_blocks || !chosen.filter.empty();
  }

  Result<void> follow_file() {
    Clock::time_point next = Clock::now();
    while (true) {
      // Existing data is read first, and shown from time to time if that takes long.
      const Clock::time_point until = std::max(next, Clock::now() + interval_);
      auto read = recording_->read([&] { return interrupted == 0 && Clock::now() < until; });
      if (!read) return read;
      const bool over = recording_->state() != FollowState::growing || interrupted != 0;
      const Clock::time_point began = Clock::now();
      if (over || began >= next) {
        if (auto shown = show(over); !shown) return shown;
        next = began + std::max<Clock::duration>(interval_, kMaxOfTheTime * (Clock::now() - began));
      }
      if (over) return {};
      wait();
    }
  }

  /// The current state. Data that an analysis does not find yet may still come, and is an error only at the end.
  Result<void> show(bool at_end) {
    if (recording_->offset() == shown_offset_ && !at_end) return {};
    shown_offset_ = recording_->offset();
    const bool text = what_.format == "text";
    auto bytes = analyze(text && screen_ ? LiveScreen::terminal() : Terminal());
    if (!bytes && at_end) return bytes.error();
    if (!to_stdout()) {
      return bytes ? write_file(what_.output, *bytes) : Result<void>();
    }
    if (!text) return bytes ? screen().show(*bytes) : Result<void>();
    return screen().show(title() + "\n\n" + (bytes ? *bytes : bytes.error().message));
  }

  [[nodiscard]] std::string title() const {
    return follow_title(recording_->path(), recording_->state(), recording_->event_count(), recording_->now_ns(),
                        recording_->behind());
  }

  Result<std::string> analyze(const Terminal& terminal) {
    const std::unique_ptr<AnalysisRun> results = what_.analysis.start();
    const auto added = recording_->keeps_blocks() ? add_blocks(*results) : add_overview(*results);
    if (!added) return added.error();
    return write_results(what_.analysis, *results, what_.format, terminal);
  }

  Result<void> add_blocks(AnalysisRun& results) {
    const Store& store = recording_->store();
    if (what_.analysis.needs_blocks && !has_attribution(store.definitions)) {
      what_.chosen.attribution = nullptr;
      Symbols symbols(store.definitions);
      return results.add(store, symbols, what_.chosen);
    }
    const auto attributed = std::make_shared<const AttributedStore>(attribute(Store(store), what_.chosen.rules));
    what_.chosen.attribution = attributed->attribution;
    Symbols symbols(attributed->definitions);
    if (what_.analysis.needs_blocks) return results.add(*attributed, symbols, what_.chosen);
    return results.add(sampled_overview(attributed), symbols, what_.chosen);
  }

  Result<void> add_overview(AnalysisRun& results) {
    SampledOverview overview = recording_->overview();
    overview.load_blocks = [this]() -> Result<std::shared_ptr<const AttributedStore>> {
      const bool is_one_file = recording_->state() != FollowState::growing && !recording_->is_kept_part();
      if (!is_one_file) return Error{recording_->path() + ": in progress"};
      auto store = open_attributed(target_.path, {}, what_.chosen.rules);
      if (!store) return store.error();
      return std::make_shared<const AttributedStore>(std::move(*store));
    };
    Symbols symbols(overview.definitions);
    return results.add(overview, symbols, what_.chosen);
  }

  /// Waits for something to read, or for a signal.
  void wait() {
    if (target_.recorder && !target_.recorder->update()) target_.recorder.reset();
    pollfd entry{target_.recorder ? target_.recorder->descriptor() : -1, POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(std::min<std::chrono::milliseconds>(kLook, interval_).count()));
  }

  /// Finds the next file of a process, which the recorder reports a moment later.
  bool find_later_file() {
    const Clock::time_point deadline = Clock::now() + kPatienceForLater;
    while (target_.pid != 0 && target_.recorder && target_.recorder->update() && Clock::now() < deadline) {
      const auto& recordings = target_.recorder->recordings();
      const auto found = std::find_if(recordings.begin(), recordings.end(), [this](const LiveRecording& recording) {
        return static_cast<std::uint64_t>(recording.pid) == target_.pid;
      });
      if (found == recordings.end()) return false;
      if (!same_recording(std::exchange(target_.path, found->path), found->path)) return true;
      wait();
    }
    return false;
  }

  [[nodiscard]] bool to_stdout() const { return what_.output.empty() || what_.output == "-"; }
  LiveScreen& screen() {
    if (!screen_) screen_.emplace();
    return *screen_;
  }

  const FollowedAnalysis& what_;
  Target target_;
  std::chrono::milliseconds interval_;
  std::unique_ptr<FollowedRecording> recording_;
  std::optional<LiveScreen> screen_;
  std::uint64_t shown_offset_ = 0;
};

}  // namespace

std::string screen_text(const std::string& text, std::size_t rows) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t shown = lines < rows ? lines : std::max<std::size_t>(rows, 3) - 2;
  std::string screen(kHome);
  std::size_t at = 0;
  for (std::size_t line = 0; line < shown; ++line) {
    const std::size_t end = text.find('\n', at);
    screen.append(text, at, end - at).append(kClearLine).append("\n");
    at = end + 1;
  }
  if (shown < lines) screen.append(more_lines_text(lines - shown)).append(kClearLine).append("\n");
  return screen.append(kClearBelow);
}

LiveScreen::LiveScreen() : in_place_(can_move_the_cursor()) {}

LiveScreen::~LiveScreen() {
  if (!in_place_ || first_) return;
  static_cast<void>(write(std::string(kWrap).append(kHome).append(kClearBelow).append(latest_)));
}

Terminal LiveScreen::terminal() {
  return detect_terminal(STDOUT_FILENO);
}

Result<void> LiveScreen::show(std::string text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  const bool first = std::exchange(first_, false);
  if (!in_place_) return write((first ? "" : "\n") + text);
  latest_ = std::move(text);
  return write(std::string(first ? kNoWrap : "") +
               screen_text(latest_, terminal_height(STDOUT_FILENO).value_or(kUsualRows)));
}

void add_follow(CommandLine& app, FollowArguments& arguments) {
  app.add_flag("--follow", arguments.follow, "Print again while the recording grows, until it ends or Ctrl-C");
  app.add_option("--interval", arguments.interval_ms, "With --follow: time between two outputs, such as 500ms or 10s")
      ->milliseconds(100, 86'400'000)
      ->show_default("2s");
  app.add_option("--pid", arguments.pid, "With --follow: the recording of this process, in place of FILE")
      ->type_name("PID")
      ->show_default("");
}

int follow(const FollowedAnalysis& what, const FollowArguments& arguments, const std::vector<std::string>& files) {
  auto target = find_target(arguments, files);
  if (!target) return fail(target.error().message);
  stop_at_signals();
  Following following(what, std::move(*target),
                      std::chrono::milliseconds(static_cast<std::int64_t>(arguments.interval_ms)));
  const auto followed = following.run();
  return followed ? kOk : fail(followed.error().message);
}

}  // namespace tidemark::cli
