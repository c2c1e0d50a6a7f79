// Samples of the host's memory by kind, and processes that the kernel killed for lack of memory. Conventions as in
// sample.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

namespace tidemark {

/// Role of a process in a job.
enum class ProcessRole : std::uint8_t {
  other = 0,             ///< some program that the job started
  main = 1,              ///< the program itself, or one of several that it consists of
  rank = 2,              ///< a process of distributed training: its environment has a rank
  data_worker = 3,       ///< a worker of a torch.utils.data.DataLoader
  resource_tracker = 4,  ///< of Python's multiprocessing: removes leaked shared memory
  fork_server = 5,       ///< of Python's multiprocessing: parent of its forked workers
  compile_worker = 6,    ///< of torch.compile
  launcher = 7,          ///< torchrun and its like
  child = 8,             ///< forked or spawned by Python's multiprocessing, with an unknown role
};
/// Stable names for machines.
inline constexpr EnumName<ProcessRole> kProcessRoleNames[] = {
    {ProcessRole::other, "other"},
    {ProcessRole::main, "main"},
    {ProcessRole::rank, "rank"},
    {ProcessRole::data_worker, "data_worker"},
    {ProcessRole::resource_tracker, "resource_tracker"},
    {ProcessRole::fork_server, "fork_server"},
    {ProcessRole::compile_worker, "compile_worker"},
    {ProcessRole::launcher, "launcher"},
    {ProcessRole::child, "child"},
};
[[nodiscard]] constexpr std::string_view name_of(ProcessRole value) {
  return name_in(kProcessRoleNames, value);
}

/// Adds known values to a sum. Without any known value, the sum stays unset.
inline void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

/// Resident pages of one process, or of several added up. Pages that processes share count in each of them.
struct ProcessPages {
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> anon_bytes;
  std::optional<std::uint64_t> file_bytes;
  std::optional<std::uint64_t> shmem_bytes;
  std::optional<std::uint64_t> swap_bytes;    ///< beyond the resident ones
  std::optional<std::uint64_t> locked_bytes;  ///< by mlock(); among the resident ones
  std::optional<std::uint64_t> pinned_bytes;  ///< by drivers that report it to the kernel

  void add(const ProcessPages& other) {
    add_known(rss_bytes, other.rss_bytes);
    add_known(anon_bytes, other.anon_bytes);
    add_known(file_bytes, other.file_bytes);
    add_known(shmem_bytes, other.shmem_bytes);
    add_known(swap_bytes, other.swap_bytes);
    add_known(locked_bytes, other.locked_bytes);
    add_known(pinned_bytes, other.pinned_bytes);
  }

  bool operator==(const ProcessPages&) const = default;
};

/// A process of the job.
struct HostProcess {
  std::int64_t pid = -1;  ///< as the recorder sees it
  std::int64_t parent_pid = -1;
  ProcessRole role = ProcessRole::other;
  bool recorded = false;                ///< the process of this recording
  std::optional<std::uint32_t> number;  ///< of a rank; of a DataLoader worker among its parent's live ones
  std::optional<std::uint32_t> count;   ///< number of DataLoader workers of its parent; number of ranks
  ProcessPages pages;
  // Set if read in this sample; they are read more rarely.
  std::optional<std::uint64_t> pss_bytes;      ///< a page that n processes share counts as 1/n in each
  std::optional<std::uint64_t> private_bytes;  ///< written pages that no other process shares: freed when it ends
  std::string name;                            ///< "python train.py"

  bool operator==(const HostProcess&) const = default;
};

/// The memory of a control group or of the machine by kind; the sum is the used memory, except for parts that the
/// kernel does not report.
struct MemoryParts {
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> limit_bytes;  ///< of the machine: all that it has
  std::optional<std::uint64_t> anon_bytes;   ///< heaps, stacks: memory that is no file's
  std::optional<std::uint64_t> cache_bytes;  ///< pages of files, without shared memory: most can be taken back
  std::optional<std::uint64_t> shmem_bytes;  ///< shared memory and files of tmpfs: only swapping takes it back
  std::optional<std::uint64_t> kernel_bytes;
  std::optional<std::uint64_t> socket_bytes;
  std::optional<std::uint64_t> swap_bytes;  ///< not part of the used memory

  bool operator==(const MemoryParts&) const = default;
};

/// How often a control group met its bounds since it exists; version 1 counts only `max`.
struct MemoryEvents {
  std::optional<std::uint64_t> low;   ///< number of times that memory was reclaimed below the protected amount
  std::optional<std::uint64_t> high;  ///< processes were slowed down for being above memory.high
  std::optional<std::uint64_t> max;   ///< number of times that the limit was reached and memory had to be reclaimed
  std::optional<std::uint64_t> oom;   ///< number of times that no memory could be reclaimed
  std::optional<bool> under_oom;      ///< processes stand still for lack of memory (version 1)

  bool operator==(const MemoryEvents&) const = default;
};

/// Breakdown of the host's memory at one time, from a single reading. Taken more rarely than HostSample, and when the
/// memory has changed.
struct HostPartsSample {
  std::uint64_t time_ns = 0;
  MemoryParts cgroup;  ///< of the control group of HostSample
  MemoryEvents cgroup_events;
  MemoryParts machine;
  std::optional<std::uint64_t> machine_available_bytes;
  std::optional<std::uint64_t> machine_oom_kills;  ///< since it started
  std::vector<HostProcess> processes;              ///< of the job: the largest ones, most resident bytes first
  std::uint32_t other_processes = 0;               ///< of the job, beyond these
  ProcessPages other_pages;                        ///< of them

  bool operator==(const HostPartsSample&) const = default;
};

/// Evidence that the kernel killed a process for lack of memory.
enum class KillEvidence : std::uint8_t {
  kernel_log = 0,   ///< the kernel's log names the process
  exit_signal = 1,  ///< it died of SIGKILL, and the kernel's count of such kills rose meanwhile
  vanished = 2,     ///< it had disappeared when the count had risen; the cause of its death is unknown
};
/// Stable names for machines.
inline constexpr EnumName<KillEvidence> kKillEvidenceNames[] = {
    {KillEvidence::kernel_log, "kernel_log"},
    {KillEvidence::exit_signal, "exit_signal"},
    {KillEvidence::vanished, "vanished"},
};
[[nodiscard]] constexpr std::string_view name_of(KillEvidence value) {
  return name_in(kKillEvidenceNames, value);
}

/// Scope of the lack of memory.
enum class KillScope : std::uint8_t {
  unknown = 0,
  cgroup = 1,   ///< a control group reached its limit
  machine = 2,  ///< the whole machine had no memory left
};
/// Stable names for machines.
inline constexpr EnumName<KillScope> kKillScopeNames[] = {
    {KillScope::unknown, "unknown"}, {KillScope::cgroup, "cgroup"}, {KillScope::machine, "machine"}};
[[nodiscard]] constexpr std::string_view name_of(KillScope value) {
  return name_in(kKillScopeNames, value);
}

/// A process of the job that the kernel's OOM killer ended.
struct KilledProcess {
  std::uint64_t time_ns = 0;  ///< when it was found
  HostProcess process;        ///< with its pages when last seen; nullopt if it was never seen
  KillEvidence evidence = KillEvidence::vanished;
  KillScope scope = KillScope::unknown;
  std::optional<std::uint64_t> cgroup_usage_bytes;  ///< the most of the samples shortly before
  std::optional<std::uint64_t> cgroup_limit_bytes;

  bool operator==(const KilledProcess&) const = default;
};

}  // namespace tidemark
