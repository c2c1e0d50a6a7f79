// Chooses the samples that ledgers of the host are made from, while samples go by: as samples.h does for devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/ledger/host_ledger.h"
#include "store/held_memory.h"
#include "store/store.h"
#include "trace/sample.h"

namespace tidemark {

/// A process that the kernel killed for lack of memory, and where the memory was in the last sample before.
struct HostKill {
  KilledProcess killed;
  std::optional<HostBreakdown> before;
};

/// The host over time: what a chart shows. Anonymous memory of processes as in the lines of a ledger.
struct HostPoint {
  std::uint64_t time_ns = 0;
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> main_bytes;     ///< of the recorded process
  std::optional<std::uint64_t> workers_bytes;  ///< of DataLoader workers
  std::optional<std::uint64_t> job_bytes;      ///< of the job's other processes
  std::optional<std::uint64_t> other_bytes;    ///< of processes that are not the job's
  std::optional<std::uint64_t> shmem_bytes;
  std::optional<std::uint64_t> cache_bytes;
  std::optional<std::uint64_t> kernel_bytes;  ///< with sockets
};

/// Which samples are wanted beside the peak and the last one.
struct HostQuery {
  std::optional<std::uint64_t> at_ns;  ///< the last sample that is not after it
  std::uint64_t stretch_ns = 0;        ///< for points: the highest sample of each stretch of this length; 0: none
};

struct HostLedgers {
  std::optional<HostBreakdown> peak;  ///< the first sample with the most used bytes, page cache left out
  std::optional<HostBreakdown> last;  ///< in which the recorded process was still there
  std::optional<HostBreakdown> at;    ///< as HostQuery::at_ns says
  std::vector<HostPoint> points;
  std::vector<HostKill> kills;  ///< the first so many

  [[nodiscard]] bool empty() const { return !peak && kills.empty(); }
};

/// Not thread-safe. Memory grows with stretches, not with samples.
class HostLedgerCollector {
 public:
  explicit HostLedgerCollector(HostQuery query = {}) : query_(query) {}

  /// As SampleConsumer. `events` null: what CUDA has pinned is not known.
  void add(const SampleRecord& record, const EventsSoFar* events = nullptr);
  /// `overview`: of all events.
  [[nodiscard]] HostLedgers finish(const Overview& overview) &&;

 private:
  struct Chosen {
    std::optional<HostBreakdown> ledger;
    HeldMemory held;
  };
  void add_parts(const HostPartsSample& sample, const EventsSoFar* events);
  void add_point(const HostBreakdown& ledger);

  HostQuery query_;
  SharedAnon shared_;
  Chosen peak_;
  Chosen last_;
  Chosen latest_;
  Chosen at_;
  std::uint64_t time_ns_ = 0;  // of the latest, so that times never decrease
  std::vector<HostPoint> points_;
  std::vector<HostKill> kills_;
};

}  // namespace tidemark
