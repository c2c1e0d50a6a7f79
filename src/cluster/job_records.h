// What a coordinator keeps of a job: its events, and the commands that were given to it. In SQLite, so that any tool
// can read it, and that a coordinator that is started again goes on where the one before ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/command.h"
#include "cluster/event.h"
#include "cluster/job_report.h"
#include "publish/history/database.h"

namespace tidemark {

/// One thread at a time.
class JobRecords {
 public:
  static constexpr std::size_t kMaxEvents = 100'000;  ///< in the file; older ones are removed
  static constexpr const char* kFile = "/job.sqlite";

  /// In memory only.
  JobRecords() = default;
  /// In this folder. The error names the file.
  static Result<JobRecords> open(const std::string& folder);

  /// Takes events that have come: each counts once. Returns the new ones; std::nullopt if they could not be written:
  /// then they have to come again.
  std::optional<std::vector<JobEvent>> add(const std::vector<EventMessage>& events);
  /// The latest events, in the order in which they came: at most JobReport::kMaxEvents.
  [[nodiscard]] const std::deque<JobEvent>& events() const { return latest_; }
  [[nodiscard]] std::uint64_t earlier() const { return count_ - latest_.size(); }
  /// Writes a command that has come, or replaces it once it `is_over`. An error, as a clause, if it is not kept.
  Result<void> write(const CommandRequest& request, const CommandReport& report, bool is_over);
  /// Why nothing can be written, as a clause; empty: it can.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  Result<void> read_latest();
  std::optional<std::vector<JobEvent>> write_events(const std::vector<EventMessage>& events);
  void keep(const JobEvent& event);

  std::string path_;
  std::optional<Database> database_;
  std::set<Key> seen_;  // without a file: of all events
  std::deque<JobEvent> latest_;
  std::uint64_t count_ = 0;
  std::string problem_;
};

}  // namespace tidemark
