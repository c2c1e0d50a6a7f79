#include <fmt/format.h>
#include <sys/ioctl.h>

#include <array>
#include <cstdint>

#include "collect/machine/files.h"
#include "collect/recorder/oom_watch.h"

namespace tidemark {
namespace {

// The first version of the kernel's `struct pidfd_info` (include/uapi/linux/pidfd.h), by the kernel's ABI.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup_id = 0;
  std::array<std::uint32_t, 11> ids{};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t kExitIsKnown = 1U << 3;

// As wait() has it: the signal is in the lowest seven bits.
int signal_in(std::uint64_t status) {
  return static_cast<int>(status & 0x7f);
}

// The last field of /proc/PID/stat, the 52nd, of a process that has ended and is not waited for.
std::optional<int> by_stat(std::int64_t pid, const std::string& root) {
  const std::string text = trimmed(read_file(fmt::format("{}/proc/{}/stat", root, pid)).value_or(""));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  const char state = text[name_end + 2];
  if (state != 'Z' && state != 'X') return std::nullopt;
  const auto status = leading_number(text.substr(text.rfind(' ') + 1));
  return status ? std::optional(signal_in(*status)) : std::nullopt;
}

}  // namespace

std::optional<int> ending_signal(std::int64_t pid, int pidfd, const std::string& root) {
  PidfdInfo info;
  info.mask = kExitIsKnown;
  if (pidfd >= 0 && ::ioctl(pidfd, kGetInfo, &info) == 0 && (info.mask & kExitIsKnown) != 0) {
    return signal_in(static_cast<std::uint32_t>(info.exit_code));
  }
  return by_stat(pid, root);
}

}  // namespace tidemark
