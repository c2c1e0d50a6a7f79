// The roles of a job's processes, as far as /proc shows them from outside.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/sample.h"

namespace tidemark {

/// Fills in the roles of a job's processes. Constant values are read once for each process; a DataLoader worker names
/// its thread only some time after it was forked. Not thread-safe.
class ProcessRoles {
 public:
  explicit ProcessRoles(std::string root = "") : root_(std::move(root)) {}

  /// Sets parent, role, name, and the number of ranks and workers of processes that have a pid. Forgets processes that
  /// are not in `job`.
  void fill_in(std::vector<HostProcess>& job);

 private:
  struct Known {
    std::uint64_t started = 0;  ///< in kernel ticks; differs if another process has the pid now
    std::int64_t parent = -1;
    ProcessRole role = ProcessRole::other;
    std::optional<std::uint32_t> rank;
    std::optional<std::uint32_t> ranks;
    std::string command;
    std::string name;
    bool settled = false;  ///< its role no longer changes
  };

  [[nodiscard]] Known identify(std::int64_t pid, std::uint64_t started, std::int64_t parent) const;
  void settle(Known& process, std::int64_t pid) const;

  std::string root_;
  std::map<std::int64_t, Known> known_;
};

/// Numbers the DataLoader workers of each parent from 0, in the order in which they were started, which is the order of
/// PyTorch's worker ids as long as a process has one loader at a time; sets their count. PIDs are assumed to grow.
void number_workers(std::vector<HostProcess>& job);

}  // namespace tidemark
