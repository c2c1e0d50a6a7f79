#include "collect/machine/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "collect/machine/files.h"
#include "collect/machine/processes.h"

namespace tidemark {
namespace {

std::optional<std::uint64_t> number_behind(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(key);
  return at == std::string::npos ? std::nullopt : leading_number(line.substr(at + key.size(), 24));
}

std::optional<std::uint64_t> kib_behind(const std::string& line, const std::string& key) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 50;
  const auto kib = number_behind(line, key);
  return kib && *kib < kMax ? std::optional(*kib << 10) : std::nullopt;
}

}  // namespace

std::optional<LoggedKill> parse_kill(const std::string& line) {
  const auto pid = number_behind(line, "Killed process ");
  if (!pid || *pid > 0x7fffffff) return std::nullopt;
  LoggedKill kill;
  kill.pid = static_cast<std::int64_t>(*pid);
  if (line.find("Memory cgroup out of memory") != std::string::npos) {
    kill.scope = KillScope::cgroup;
  } else if (line.find("Out of memory") != std::string::npos) {
    kill.scope = KillScope::machine;
  } else {
    return std::nullopt;
  }
  // The name before it is in brackets and may contain anything: the kernel's own text follows the last bracket.
  const std::string rest = line.substr(line.rfind(')') == std::string::npos ? 0 : line.rfind(')'));
  kill.pages.anon_bytes = kib_behind(rest, "anon-rss:");
  kill.pages.file_bytes = kib_behind(rest, "file-rss:");
  kill.pages.shmem_bytes = kib_behind(rest, "shmem-rss:");
  if (kill.pages.anon_bytes && kill.pages.file_bytes && kill.pages.shmem_bytes) {
    kill.pages.rss_bytes = *kill.pages.anon_bytes + *kill.pages.file_bytes + *kill.pages.shmem_bytes;
  }
  return kill;
}

KernelLog::KernelLog(const std::string& root) {
  if (!in_first_pid_namespace(root)) return;
  fd_ = ScopedFd(::open((root + "/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd_ && ::lseek(fd_.get(), 0, SEEK_END) < 0) fd_.reset();
}

std::vector<LoggedKill> KernelLog::read() {
  constexpr int kMaxLines = 4096;
  std::vector<LoggedKill> kills;
  std::array<char, 8192> record{};
  for (int n = 0; fd_ && n < kMaxLines; ++n) {
    const ssize_t got = ::read(fd_.get(), record.data(), record.size());
    if (got < 0 && errno == EPIPE) continue;  // older lines were overwritten
    if (got <= 0) break;
    // "6,1234,56789,-;text", then lines of a dictionary. Privileged programs can also write there, with facility 1 and
    // above: the kernel's own lines have facility 0, so a priority below 8.
    const std::string text(record.data(), static_cast<std::size_t>(got));
    const std::size_t begin = text.find(';');
    if (begin == std::string::npos || leading_number(text).value_or(8) >= 8) continue;
    if (auto kill = parse_kill(text.substr(begin + 1, text.find('\n') - begin - 1))) kills.push_back(*kill);
  }
  return kills;
}

}  // namespace tidemark
