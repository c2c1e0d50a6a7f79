// Where the host's memory is: used = anonymous memory of the job's processes and of others + shared memory + page cache
// + kernel + what is not explained. Of the control group with the lowest limit where there is one, else of the machine.
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

/// Whose memory it is about.
enum class HostScope : std::uint8_t { machine, cgroup };
/// Stable names for machines.
inline constexpr EnumName<HostScope> kHostScopeNames[] = {{HostScope::machine, "machine"},
                                                          {HostScope::cgroup, "cgroup"}};
[[nodiscard]] constexpr std::string_view name_of(HostScope value) {
  return name_in(kHostScopeNames, value);
}

/// What a line's memory is.
enum class HostPart : std::uint8_t {
  process,          ///< anonymous memory of a process of the job; of a forked one, what it does not share
  job_processes,    ///< likewise of those with less, added up
  other_processes,  ///< likewise of all that is not the job's
  shared_memory,  ///< shared memory and files of tmpfs, whoever has it mapped: batches of DataLoader workers, /dev/shm
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

/// What limits the accuracy of a host ledger.
enum class HostCaveat : std::uint8_t {
  shared_pages,  ///< of a forked process it was not read yet which pages are its own: those of its parent count twice
  estimated_pages,  ///< it was read at another time
  anon_unknown,     ///< the kernel does not say how much of some process's memory is anonymous
  parts_unknown,    ///< nor what the used memory is
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
  std::optional<std::uint64_t> limit_bytes;       ///< of the machine all that it has
  std::optional<std::uint64_t> available_bytes;   ///< on the machine: what programs can still get without swapping
  std::vector<HostLine> lines;                    ///< processes, most bytes first; then the other parts, in their order
  std::optional<std::int64_t> unexplained_bytes;  ///< below 0 where more is known of than is used
  // Not in the sum.
  std::optional<std::uint64_t> swap_bytes;
  std::optional<std::uint64_t> locked_bytes;  ///< by mlock(), by all processes of the job; in the lines too
  std::optional<std::uint64_t> pinned_bytes;  ///< by drivers that the kernel knows of, likewise; in the lines too
  /// By CUDA, of the recorded process, as its calls say. The kernel does not count it for a process.
  std::optional<std::uint64_t> cuda_pinned_bytes;
  MemoryEvents events;                    ///< of the control group, since it exists
  std::vector<HostProcess> processes;     ///< of the job, most resident bytes first
  std::uint32_t other_process_count = 0;  ///< beyond these
  ProcessPages other_pages;               ///< of them
  std::vector<HostCaveat> caveats;
};

/// Of the anonymous pages of processes, those that are not private to them, when that was read last. Pages that a
/// forked process still shares are its parent's, which had them first; what it gets later is its own. Not thread-safe.
class SharedAnon {
 public:
  /// Learns from a sample's private bytes. Keeps what its processes had before, and forgets others.
  void update(const HostPartsSample& sample);
  /// By PID; none where it was never read.
  [[nodiscard]] std::optional<std::uint64_t> of(std::int64_t pid) const;

 private:
  std::map<std::int64_t, std::uint64_t> bytes_;
};

/// `shared` has learnt from the sample.
[[nodiscard]] HostBreakdown make_host_ledger(const HostPartsSample& sample, const SharedAnon& shared);

/// Page-locked memory that the recorded process had from CUDA; none where no calls were recorded.
[[nodiscard]] std::optional<std::uint64_t> cuda_pinned_bytes(const Overview& overview, const HeldMemory& held);

/// The control group where it has a limit that is below the machine's memory.
[[nodiscard]] HostScope scope_of(const HostPartsSample& sample);
[[nodiscard]] const MemoryParts& parts_of(const HostPartsSample& sample);

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
