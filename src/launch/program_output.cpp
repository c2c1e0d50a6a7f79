#include "launch/program_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"
#include "launch/background_process.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

// Reads until the end. False when the time is over before.
bool read_all(const ScopedFd& fd, Clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) == 0) return false;
    std::array<char, 4096> part{};
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<ProgramOutput> program_output(std::vector<std::string> words, std::chrono::seconds patience) {
  const std::string program = words.front();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{fmt::format("cannot run {}: {}", program, std::strerror(errno))};
  }
  const ScopedFd answers(ends[0]);
  ScopedFd answers_end(ends[1]);
  auto process = BackgroundProcess::start({std::move(words)}, {.out = answers_end.get()});
  if (!process) return process.error();
  answers_end.reset();
  const Clock::time_point deadline = Clock::now() + patience;
  ProgramOutput output;
  bool in_time = read_all(answers, deadline, output.text);
  while (in_time) {
    if (const auto end = process->ended()) {
      output.exit_code = end->exit_code;
      return output;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    in_time = Clock::now() < deadline;
  }
  return Error{fmt::format("{} did not answer within {} s", program, patience.count())};
}

}  // namespace tidemark
