// Processes that the kernel has killed for lack of host memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/machine/host_memory.h"

namespace tidemark {

/// Counts from its construction on. The kernel does not say which processes they were: a control group (a container, a
/// Slurm job, a terminal's session) counts its own, the machine all.
class OomKills {
 public:
  /// `root` comes before "/proc" and before the mount points in it.
  explicit OomKills(const std::string& root = "");

  [[nodiscard]] std::uint64_t count() const;
  /// Whether only processes of this process's control group count.
  [[nodiscard]] bool of_own_group() const { return group_.has_value(); }

 private:
  [[nodiscard]] std::optional<std::uint64_t> read() const;

  std::string root_;
  std::optional<Cgroup> group_;  // none where it does not count
  std::uint64_t before_ = 0;
};

}  // namespace tidemark
