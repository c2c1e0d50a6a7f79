// The host's memory, and the limit that a control group (a container, a Slurm job, a systemd unit) sets on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "trace/sample.h"

namespace tidemark {

struct HostMemory {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> available_bytes;  ///< what programs can still get without swapping (MemAvailable)
};

[[nodiscard]] HostMemory read_host_memory(const std::string& root = "");

/// All that /proc/meminfo says of the machine, and how many processes its OOM killer has ended (/proc/vmstat).
struct MachineReading {
  MemoryParts parts;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> oom_kills;
};

[[nodiscard]] MachineReading read_machine_memory(const std::string& root = "");

/// What a control group says at one time. None where it does not say.
struct CgroupReading {
  std::optional<std::uint64_t> usage_bytes;  ///< of all its processes, with the files that the kernel caches for them
  std::optional<std::uint64_t> oom_kills;    ///< processes the kernel has killed for lack of memory since it exists
};

/// The memory control group of a process that matters: of its own and those around it the one with the lowest limit,
/// because that is reached first; its own where none has a limit. Finds it once; safe to read from any thread.
class Cgroup {
 public:
  /// None where there are no memory control groups. `root` comes before "/proc" and before the mount points in it.
  static std::optional<Cgroup> of_this_process(const std::string& root = "");
  /// Of another one, which may be in a container. None also where it is gone, and where its group is not among those
  /// that are mounted here: containers see only their own.
  static std::optional<Cgroup> of_process(std::int64_t pid, const std::string& root = "");
  /// The one that this process is in, whatever its limit.
  static std::optional<Cgroup> own(const std::string& root = "");

  [[nodiscard]] int version() const { return version_; }  ///< 1 or 2
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;  ///< now; none where there is no limit
  [[nodiscard]] CgroupReading read() const;
  /// Of the usage: pages of files that nobody used lately, which the kernel takes back before it kills anything.
  [[nodiscard]] std::optional<std::uint64_t> inactive_file_bytes() const;
  /// What it holds, from memory.stat: of all its processes and of the groups in it.
  [[nodiscard]] MemoryParts parts() const;
  [[nodiscard]] MemoryEvents events() const;

 private:
  Cgroup(int version, std::string folder, std::size_t top) : version_(version), folder_(std::move(folder)), top_(top) {}
  // `process`: a PID or "self". `or_top`: the topmost group that is mounted, where its own is not to be seen.
  static std::optional<Cgroup> find(const std::string& process, bool or_top, const std::string& root);
  [[nodiscard]] Cgroup with_lowest_limit() const;

  int version_;
  std::string folder_;
  std::size_t top_;  // how long the name of the mount point is
};

}  // namespace tidemark
