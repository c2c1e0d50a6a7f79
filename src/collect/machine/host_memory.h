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
  std::optional<std::uint64_t> available_bytes;  ///< memory that programs can get without swapping (MemAvailable)
};

[[nodiscard]] HostMemory read_host_memory(const std::string& root = "");

/// All values of /proc/meminfo, and how many processes the machine's OOM killer has ended (/proc/vmstat).
struct MachineReading {
  MemoryParts parts;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> oom_kills;
};

[[nodiscard]] MachineReading read_machine_memory(const std::string& root = "");

/// Values of a control group at one time. std::nullopt if the kernel does not report one.
struct CgroupReading {
  std::optional<std::uint64_t> usage_bytes;  ///< all its processes, including the files that the kernel caches for them
  std::optional<std::uint64_t> oom_kills;    ///< processes that the kernel has killed for lack of memory since the
                                             ///< group exists
};

/// The memory control group that limits a process: of its own group and the groups around it the one with the lowest
/// limit, because that is reached first; its own group if none has a limit. Looked up once; safe to read from any
/// thread.
class Cgroup {
 public:
  /// std::nullopt without memory control groups. `root` comes before "/proc" and before the mount points in it.
  static std::optional<Cgroup> of_this_process(const std::string& root = "");
  /// The group of another process, which may be in a container. Also std::nullopt if the process is gone, or its group
  /// is not among those mounted here: containers see only their own.
  static std::optional<Cgroup> of_process(std::int64_t pid, const std::string& root = "");
  /// The group that this process is in, whatever its limit.
  static std::optional<Cgroup> own(const std::string& root = "");

  [[nodiscard]] int version() const { return version_; }  ///< 1 or 2
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;  ///< current limit; std::nullopt without a limit
  [[nodiscard]] CgroupReading read() const;
  /// The part of the usage that is pages of files not used lately. The kernel takes these back before it kills a
  /// process.
  [[nodiscard]] std::optional<std::uint64_t> inactive_file_bytes() const;
  /// Parts of the usage, from memory.stat: all processes of the group and of the groups in it.
  [[nodiscard]] MemoryParts parts() const;
  [[nodiscard]] MemoryEvents events() const;

 private:
  Cgroup(int version, std::string folder, std::size_t top) : version_(version), folder_(std::move(folder)), top_(top) {}
  // `process`: a PID or "self". `or_top`: use the topmost mounted group if the process's own is not visible.
  static std::optional<Cgroup> find(const std::string& process, bool or_top, const std::string& root);
  [[nodiscard]] Cgroup with_lowest_limit() const;

  int version_;
  std::string folder_;
  std::size_t top_;  // length of the mount point's name
};

}  // namespace tidemark
