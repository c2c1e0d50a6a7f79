#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/scoped_fd.h"
#include "collect/machine/processes.h"
#include "doctor/diagnosis.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kLowSpaceBytes = std::uint64_t{1} << 30;

Check check_memfd() {
  const ScopedFd fd(::memfd_create("tidemark-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool works = fd && ::ftruncate(fd.get(), 4096) == 0 && ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  if (works) return {"memfd", Finding::memfd_works, CheckStatus::ok, {}};
  return {"memfd", Finding::memfd_failed, CheckStatus::problem, std::strerror(errno)};
}

// Chosen as in collect/recorder: the socket's path must fit into a sockaddr_un.
Check check_socket() {
  constexpr std::size_t kMaxBytes = 80;
  const char* only = std::getenv("TIDEMARK_RUNTIME_DIR");
  const bool has_only = only != nullptr && *only != '\0';
  for (const char* variable : {"TIDEMARK_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR", ""}) {
    if (has_only && variable != std::string_view("TIDEMARK_RUNTIME_DIR")) break;
    const char* folder = *variable == '\0' ? "/tmp" : std::getenv(variable);
    if (folder == nullptr || *folder == '\0' || std::strlen(folder) > kMaxBytes) continue;
    if (::access(folder, W_OK | X_OK) == 0) return {"socket", Finding::socket_folder_found, CheckStatus::ok, folder};
  }
  return {"socket", Finding::socket_folder_missing, CheckStatus::problem, {}};
}

void check_permissions(std::vector<Check>& checks) {
  const ScopedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const bool has_pss = walked_pages(::getpid()).pss_bytes.has_value();
  if (pidfd && has_pss) checks.push_back({"permissions", Finding::permissions_granted, CheckStatus::ok, {}});
  if (!pidfd) checks.push_back({"permissions", Finding::pidfd_unavailable, CheckStatus::warning, {}});
  if (!has_pss) checks.push_back({"permissions", Finding::pss_unavailable, CheckStatus::warning, {}});
}

void check_space(std::vector<Check>& checks) {
  if (::access(".", W_OK | X_OK) != 0) {
    checks.push_back({"space", Finding::space_unwritable, CheckStatus::problem, std::strerror(errno)});
    return;
  }
  struct statvfs space {};
  if (::statvfs(".", &space) != 0) return;
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  const bool low = free < kLowSpaceBytes;
  checks.push_back({"space",
                    low ? Finding::space_low : Finding::space_free,
                    low ? CheckStatus::warning : CheckStatus::ok,
                    {},
                    free});
}

}  // namespace

void check_memory(Diagnosis& diagnosis) {
  const auto& cgroup = diagnosis.inventory.cgroup;
  const bool nearly_full =
      cgroup && cgroup->limit_bytes && cgroup->usage_bytes && *cgroup->usage_bytes > *cgroup->limit_bytes / 10 * 9;
  diagnosis.checks.push_back({"host_memory",
                              nearly_full ? Finding::memory_nearly_full : Finding::memory_free,
                              nearly_full ? CheckStatus::warning : CheckStatus::ok,
                              {}});
  const std::uint64_t kills = cgroup ? cgroup->oom_kills.value_or(0) : 0;
  if (kills != 0) diagnosis.checks.push_back({"oom_kills", Finding::oom_kills, CheckStatus::warning, {}, kills});
}

void check_system(Diagnosis& diagnosis) {
  diagnosis.checks.push_back(check_memfd());
  diagnosis.checks.push_back(check_socket());
  check_permissions(diagnosis.checks);
  check_space(diagnosis.checks);
}

}  // namespace tidemark
