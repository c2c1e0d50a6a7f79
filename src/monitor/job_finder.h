// Which processes are looked at while a machine is watched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/recorder/sampling/sample_taker.h"

namespace tidemark {

/// When a process was started, in ticks since the machine was: with its PID it names the process for good. None when it
/// is gone.
[[nodiscard]] std::optional<std::uint64_t> start_of(std::int64_t pid, const std::string& root = "");

/// One thread at a time.
class JobFinder {
 public:
  /// With a PID: that process, unless it has ended, and all below it. Without: those that devices list, with those
  /// below them that run the same executable (workers of a DataLoader, forked or spawned), and those that are being
  /// recorded, by this user; for root, by any user, of the same user's programs.
  JobFinder(std::optional<std::int64_t> pid, std::string root);

  [[nodiscard]] std::vector<JobProcess> find(const std::vector<std::int64_t>& on_devices) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> recorded() const;

  std::optional<std::int64_t> pid_;
  std::optional<std::uint64_t> start_;
  std::string root_;
};

}  // namespace tidemark
