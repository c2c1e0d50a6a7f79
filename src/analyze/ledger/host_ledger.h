// Breakdown of the host's memory: used = anonymous memory of the job's and other processes + shared memory + page cache
// + kernel + unexplained. For the control group with the lowest limit, or for the machine if there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "store/held_memory.h"
#include "store/store.h"
#include "trace/sample.h"

namespace tidemark {

/// The memory that a ledger covers.
enum class HostScope : std::uint8_t { machine, cgroup };
/// Stable names for machines.
inline constexpr EnumName<HostScope> kHostScopeNames[] = {{HostScope::machine, "machine"},
                                                          {HostScope::cgroup, "cgroup"}};
[[nodiscard]] constexpr std::string_view name_of(HostScope value) {
  return name_in(kHostScopeNames, value);
}

/// Kind of memory of a line.
enum class HostPart : std::uint8_t {
  process,          ///< anonymous memory of a process of the job; for a forked one, pages it does not share
  job_processes,    ///< the sum over the job's smaller processes
  other_processes,  ///< the sum over all other processes
  shared_memory,  ///< shared memory and files of tmpfs, mapped by any process: batches of DataLoader workers, /dev/shm
  page_cache,     ///< pages of files; the kernel takes most of them back when memory is short
  kernel,
  sockets,
};
/// Stable names for machines.
inline constexpr EnumName<HostPart> kHostPartNames[] = {
    {HostPart::process, "process"},
    {HostPart::job_processes, "job_processes"},
    {HostPart::other_processes, "other_processes"},
    {HostPart::shared_memory, "shared_memory"},
    {HostPart::page_cache, "page_cache"},
    {HostPart::kernel, "kernel"},
    {HostPart::sockets, "sockets"},
};
[[nodiscard]] constexpr std::string_view name_of(HostPart value) {
  return name_in(kHostPartNames, value);
}

struct HostLine {
  HostPart part = HostPart::process;
  std::optional<std::uint64_t> bytes;
  std::optional<std::size_t> process;  ///< process: index into HostBreakdown::processes
  std::uint64_t count = 0;             ///< job_processes: how many
};

/// Limits the accuracy of a host ledger.
enum class HostCaveat : std::uint8_t {
  shared_pages,     ///< private pages of a forked process were not read yet: pages shared with its parent count twice
  estimated_pages,  ///< it was read at another time
  anon_unknown,     ///< the kernel does not report anonymous memory of some process
  parts_unknown,    ///< the kernel does not report the parts of used memory
};
/// Stable names for machines.
inline constexpr EnumName<HostCaveat> kHostCaveatNames[] = {
    {HostCaveat::shared_pages, "shared_pages"},
    {HostCaveat::estimated_pages, "estimated_pages"},
    {HostCaveat::anon_unknown, "anon_unknown"},
    {HostCaveat::parts_unknown, "parts_unknown"},
};
[[nodiscard]] constexpr std::string_view name_of(HostCaveat value) {
  return name_in(kHostCaveatNames, value);
}

/// Used = the sum of the lines + unexplained.
struct HostBreakdown {
  std::uint64_t time_ns = 0;
  HostScope scope = HostScope::machine;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> limit_bytes;       ///< for the machine: its total memory
  std::optional<std::uint64_t> available_bytes;   ///< on the machine: memory available to programs without swapping
  std::vector<HostLine> lines;                    ///< processes, most bytes first; then the other parts, in their order
  std::optional<std::int64_t> unexplained_bytes;  ///< negative if the known parts exceed the used memory
  // Not in the sum.
  std::optional<std::uint64_t> swap_bytes;
  std::optional<std::uint64_t> locked_bytes;  ///< by mlock(), by all processes of the job; included in the lines
  std::optional<std::uint64_t> pinned_bytes;  ///< by drivers that report it to the kernel, for all processes of the
                                              ///< job; included in the lines
  /// Pinned by CUDA for the recorded process, from its calls. The kernel does not count it for a process.
  std::optional<std::uint64_t> cuda_pinned_bytes;
  MemoryEvents events;                    ///< of the control group, since it exists
  std::vector<HostProcess> processes;     ///< of the job, most resident bytes first
  std::uint32_t other_process_count = 0;  ///< beyond these
  ProcessPages other_pages;               ///< of them
  std::vector<HostCaveat> caveats;
};

/// Shared part of the anonymous pages of processes, when last read. Pages that a forked process still shares count for
/// its parent; pages it allocates later are its own. Not thread-safe.
class SharedAnon {
 public:
  /// Takes the private bytes of a sample. Keeps earlier values of its processes, and drops other processes.
  void update(const HostPartsSample& sample);
  /// By PID; nullopt if it was never read.
  [[nodiscard]] std::optional<std::uint64_t> of(std::int64_t pid) const;

 private:
  std::map<std::int64_t, std::uint64_t> bytes_;
};

/// `shared` has learnt from the sample.
[[nodiscard]] HostBreakdown make_host_ledger(const HostPartsSample& sample, const SharedAnon& shared);

/// Page-locked memory that CUDA allocated for the recorded process; nullopt if no calls were recorded.
[[nodiscard]] std::optional<std::uint64_t> cuda_pinned_bytes(const Overview& overview, const HeldMemory& held);

/// The control group if its limit is below the machine's memory.
[[nodiscard]] HostScope scope_of(const HostPartsSample& sample);
[[nodiscard]] const MemoryParts& parts_of(const HostPartsSample& sample);

/// A process that the kernel killed for lack of memory, with the breakdown of the last sample before.
struct HostKill {
  KilledProcess killed;
  std::optional<HostBreakdown> before;
};

/// The host over time, for charts. Anonymous memory of processes as in the lines of a ledger.
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

/// Selects samples in addition to the peak and the last one.
struct HostQuery {
  std::optional<std::uint64_t> at_ns;  ///< selects the last sample that is not after it
  std::uint64_t stretch_ns = 0;        ///< for points: selects the highest sample of each stretch of this length; 0:
                                       ///< none
};

struct HostLedgers {
  std::optional<HostBreakdown> peak;  ///< the first sample with the most used bytes, page cache left out
  std::optional<HostBreakdown> last;  ///< the last sample that contains the recorded process
  std::optional<HostBreakdown> at;    ///< the sample selected by HostQuery::at_ns
  std::vector<HostPoint> points;
  std::vector<HostKill> kills;  ///< the first ones

  [[nodiscard]] bool empty() const { return !peak && kills.empty(); }
};

/// Not thread-safe. Memory grows with stretches, not with samples.
class HostLedgerCollector {
 public:
  explicit HostLedgerCollector(HostQuery query = {}) : query_(query) {}

  /// As SampleConsumer. `events` null: memory pinned by CUDA is unknown.
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
