#include "publish/actions/command.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/scoped_fd.h"
#include "launch/background_process.h"

namespace tidemark {
namespace {

constexpr std::chrono::milliseconds kPauseForCommand{20};

// A file rather than a pipe, so that nobody waits for a command that does not read.
Result<ScopedFd> file_with(const std::string& content) {
  ScopedFd file(::memfd_create("tidemark-assessment", MFD_CLOEXEC));
  const bool written =
      file && ::write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (written && ::lseek(file.get(), 0, SEEK_SET) == 0) return file;
  return Error{fmt::format("cannot hand the assessment to the command: {}", std::strerror(errno))};
}

}  // namespace

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
