#include "publish/actions/risk_actions.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"
#include "http/post.h"
#include "launch/background_process.h"

namespace tidemark {

namespace {

constexpr std::size_t kMaxActionsWaiting = 64;
constexpr std::chrono::milliseconds kPatienceWithActions{5000};  // at the end

constexpr std::chrono::milliseconds kPauseForCommand{20};

// A file rather than a pipe, so that a command that does not read it blocks nothing.
Result<ScopedFd> file_with(const std::string& content) {
  ScopedFd file(::memfd_create("tidemark-assessment", MFD_CLOEXEC));
  const bool written =
      file && ::write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (written && ::lseek(file.get(), 0, SEEK_SET) == 0) return file;
  return Error{fmt::format("cannot hand the assessment to the command: {}", std::strerror(errno))};
}

}  // namespace

RiskActions::RiskActions(RiskActionOptions options) : options_(std::move(options)), limit_(options_.interval) {
  for (std::size_t index = 0; index < options_.actions.size(); ++index) {
    workers_.emplace_back(kMaxActionsWaiting, [this](const std::string& why) {
      options_.problem(fmt::format("commands and webhooks: {}", why));
    });
  }
}

RiskActions::~RiskActions() {
  const auto deadline = std::chrono::steady_clock::now() + kPatienceWithActions;
  for (Worker& worker : workers_) {
    worker.wait(std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()));
  }
  for (Worker& worker : workers_) worker.stop();
}

std::uint64_t RiskActions::dropped() const {
  return std::accumulate(workers_.begin(), workers_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Worker& worker) { return sum + worker.dropped(); });
}

void RiskActions::act_on(const RiskChange& change, const std::function<std::string()>& json) {
  std::string text;
  for (std::size_t index = 0; index < options_.actions.size(); ++index) {
    const RiskAction& action = options_.actions[index];
    if (change.now.level < action.least || change.now.level <= change.before) continue;
    const std::string key = fmt::format("{} {} {}", index, name_of(change.now.level), change.device);
    if (!limit_.allow(key, RateLimit::Clock::now())) continue;
    if (text.empty()) text = json();
    Worker& worker = workers_[index];
    worker.add([this, &action, &worker, text] { act(action, text, worker.stopping()); });
  }
}

void RiskActions::act(const RiskAction& action, const std::string& json, const std::atomic<bool>& stop) {
  if (action.url.empty()) {
    const auto ran = run_command(action.command, json, options_.patience, stop);
    if (!ran) options_.problem(fmt::format("{}: {}", action.command, ran.error().message));
    return;
  }
  const auto answer = post({action.url, json, {"Content-Type: application/json"}, options_.patience}, stop);
  if (!answer) {
    options_.problem(answer.error().message);
  } else if (answer->status < 200 || answer->status >= 300) {
    options_.problem(fmt::format("{} answers with status {}", shown_url(action.url), answer->status));
  }
}

Result<void> run_command(const std::string& command, const std::string& input, std::chrono::milliseconds patience,
                         const std::atomic<bool>& stop) {
  if (stop) return Error{"the command was not run: this program ends"};
  const auto in = file_with(input);
  if (!in) return in.error();
  auto process = BackgroundProcess::start({{"sh", "-c", command}}, {-1, -1, in->get()});
  if (!process) return process.error();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (const auto end = process->ended()) {
      if (end->ending_signal) return Error{fmt::format("the command was ended by signal {}", *end->ending_signal)};
      if (end->exit_code.value_or(0) != 0)
        return Error{fmt::format("the command failed: exit code {}", *end->exit_code)};
      return {};
    }
    if (stop) return Error{"the command was ended with this program"};
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error{fmt::format("the command was ended after {:g} s", std::chrono::duration<double>(patience).count())};
    }
    std::this_thread::sleep_for(kPauseForCommand);
  }
}

}  // namespace tidemark
