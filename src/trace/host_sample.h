// The host's memory by what holds it, and processes that the kernel killed for lack of it. As sample.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

namespace tidemark {

/// What a process of a job is there for.
enum class ProcessRole : std::uint8_t {
  other = 0,             ///< some program that the job started
  main = 1,              ///< the program itself, or one of several that it consists of
  rank = 2,              ///< a process of distributed training: its environment has a rank
  data_worker = 3,       ///< a worker of a torch.utils.data.DataLoader
  resource_tracker = 4,  ///< of Python's multiprocessing: removes shared memory that is left behind
  fork_server = 5,       ///< of Python's multiprocessing: what its workers are forked from
  compile_worker = 6,    ///< of torch.compile
  launcher = 7,          ///< torchrun and its like
  child = 8,             ///< forked or spawned by Python's multiprocessing, for what is not known
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

/// Adds to a sum what is known. Of nothing known there is no sum.
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
  std::optional<std::uint64_t> pinned_bytes;  ///< by drivers that the kernel knows of

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
  std::optional<std::uint32_t> number;  ///< of a rank; of a DataLoader worker among those of its parent that were alive
  std::optional<std::uint32_t> count;   ///< how many DataLoader workers its parent had; how many ranks there are
  ProcessPages pages;
  // Where they were read this time, which is more rarely.
  std::optional<std::uint64_t> pss_bytes;      ///< a page that n processes share counts as 1/n in each
  std::optional<std::uint64_t> private_bytes;  ///< written pages that no other process has: what ends with it
  std::string name;                            ///< "python train.py"

  bool operator==(const HostProcess&) const = default;
};

/// The memory of a control group or of the machine by what it holds; the sum is what is used, but for what the kernel
/// does not say.
struct MemoryParts {
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> limit_bytes;  ///< of the machine: all that it has
  std::optional<std::uint64_t> anon_bytes;   ///< heaps, stacks: memory that is no file's
  std::optional<std::uint64_t> cache_bytes;  ///< pages of files, without shared memory: most can be taken back
  std::optional<std::uint64_t> shmem_bytes;  ///< shared memory and files of tmpfs: only swapping takes it back
  std::optional<std::uint64_t> kernel_bytes;
  std::optional<std::uint64_t> socket_bytes;
  std::optional<std::uint64_t> swap_bytes;  ///< not among what is used

  bool operator==(const MemoryParts&) const = default;
};

/// How often a control group met its bounds since it exists; version 1 counts only `max`.
struct MemoryEvents {
  std::optional<std::uint64_t> low;   ///< memory was taken back although it had less than is protected
  std::optional<std::uint64_t> high;  ///< processes were slowed down for being above memory.high
  std::optional<std::uint64_t> max;   ///< the limit was reached and memory had to be taken back
  std::optional<std::uint64_t> oom;   ///< nothing could be taken back
  std::optional<bool> under_oom;      ///< processes stand still for lack of memory (version 1)

  bool operator==(const MemoryEvents&) const = default;
};

/// What the host's memory held at one time, all read together. Taken more rarely than HostSample, and when the memory
/// has changed.
struct HostPartsSample {
  std::uint64_t time_ns = 0;
  MemoryParts cgroup;  ///< of the control group of HostSample
  MemoryEvents cgroup_events;
  MemoryParts machine;
  std::optional<std::uint64_t> machine_available_bytes;
  std::optional<std::uint64_t> machine_oom_kills;  ///< since it started
  std::vector<HostProcess> processes;              ///< of the job: those with the most resident bytes, most first
  std::uint32_t other_processes = 0;               ///< of the job, beyond these
  ProcessPages other_pages;                        ///< of them

  bool operator==(const HostPartsSample&) const = default;
};

/// How it is known that the kernel killed a process for lack of memory.
enum class KillEvidence : std::uint8_t {
  kernel_log = 0,   ///< the kernel's log names the process
  exit_signal = 1,  ///< it died of SIGKILL, and the kernel's count of such kills rose meanwhile
  vanished = 2,     ///< it was gone when the count had risen; of what it died is not known
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

/// Whose lack of memory it was.
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
  HostProcess process;        ///< with the pages that it was last seen with; pages are none where it never was
  KillEvidence evidence = KillEvidence::vanished;
  KillScope scope = KillScope::unknown;
  std::optional<std::uint64_t> cgroup_usage_bytes;  ///< the most of the samples shortly before
  std::optional<std::uint64_t> cgroup_limit_bytes;

  bool operator==(const KilledProcess&) const = default;
};

}  // namespace tidemark
