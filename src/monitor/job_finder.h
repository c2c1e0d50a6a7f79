// Finds the processes to read while a machine is watched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/recorder/sampling/sample_taker.h"

namespace tidemark {

/// When a process was started, in ticks since boot: together with its PID it identifies the process. std::nullopt if it
/// is gone.
[[nodiscard]] std::optional<std::uint64_t> start_of(std::int64_t pid, const std::string& root = "");

/// One thread at a time.
class JobFinder {
 public:
  /// With a PID: that process, unless it has ended, and its descendants. Without: processes that devices list, their
  /// descendants that run the same executable (workers of a DataLoader, forked or spawned), and recorded processes of
  /// this user; for root, of all users, if the recorder belongs to the same user.
  JobFinder(std::optional<std::int64_t> pid, std::string root);

  [[nodiscard]] std::vector<JobProcess> find(const std::vector<std::int64_t>& on_devices) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> recorded() const;

  std::optional<std::int64_t> pid_;
  std::optional<std::uint64_t> start_;
  std::string root_;
};

}  // namespace tidemark
