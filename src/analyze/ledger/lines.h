// The lines of a ledger at one time, from the recorded allocations and the memory that the driver reported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ledger/memory_owner.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// The owner of a line's memory.
enum class LedgerPart : std::uint8_t {
  pytorch,  ///< reserved by the framework's allocator
  library,  ///< reserved from the driver by a library of the recorded process, for itself
  context,  ///< the recorded process's CUDA context and loaded code; without driver events the libraries' memory too
  process,  ///< another process's
};
/// Stable names for machines.
inline constexpr EnumName<LedgerPart> kLedgerPartNames[] = {
    {LedgerPart::pytorch, "pytorch"},
    {LedgerPart::library, "library"},
    {LedgerPart::context, "context"},
    {LedgerPart::process, "process"},
};
[[nodiscard]] constexpr std::string_view name_of(LedgerPart value) {
  return name_in(kLedgerPartNames, value);
}

struct LedgerLine {
  LedgerPart part = LedgerPart::pytorch;
  std::optional<std::uint64_t> bytes;
  std::string name;                                  ///< of the library or process; may be empty. Not safe to print
  std::int64_t pid = -1;                             ///< process: as the driver numbers it
  ProcessKind process_kind = ProcessKind::recorded;  ///< process; `recorded` on devices with an unknown allocator
};

/// Limits the accuracy of a ledger.
enum class LedgerCaveat : std::uint8_t {
  no_samples,             ///< the recording has no samples of devices
  device_not_sampled,     ///< there are samples, but none is known to be of this device
  no_sample_yet,          ///< the first was taken later
  used_unknown,           ///< the driver never reported the used memory of the device
  no_events,              ///< nothing was recorded: there is no time to analyze
  reserved_unknown,       ///< the memory reserved by PyTorch was not known yet
  allocator_unknown,      ///< the program's index of the device is unknown: only data of the driver
  libraries_in_context,   ///< no calls to the driver were recorded: `tidemark run --driver on` would split the context
  driver_calls_missing,   ///< some or all calls to the driver could not be recorded: libraries may be wrong
  processes_unknown,      ///< the driver did not list the processes of the device
  process_not_listed,     ///< the recorded process was not in the list of processes
  process_bytes_unknown,  ///< the list has it, but without its memory
  process_matched,        ///< a process of another PID namespace was taken for the recorded one
  process_below_known,    ///< the driver reports less than the known memory of the process
  other_bytes_unknown,    ///< the driver did not report the memory of some other process
  during_driver_call,     ///< a slow driver call was under way: the used bytes may not match the events
  transient_peak,         ///< more was used at another time, during such a call
};
/// Stable names for machines.
inline constexpr EnumName<LedgerCaveat> kLedgerCaveatNames[] = {
    {LedgerCaveat::no_samples, "no_samples"},
    {LedgerCaveat::device_not_sampled, "device_not_sampled"},
    {LedgerCaveat::no_sample_yet, "no_sample_yet"},
    {LedgerCaveat::used_unknown, "used_unknown"},
    {LedgerCaveat::no_events, "no_events"},
    {LedgerCaveat::reserved_unknown, "reserved_unknown"},
    {LedgerCaveat::allocator_unknown, "allocator_unknown"},
    {LedgerCaveat::libraries_in_context, "libraries_in_context"},
    {LedgerCaveat::driver_calls_missing, "driver_calls_missing"},
    {LedgerCaveat::processes_unknown, "processes_unknown"},
    {LedgerCaveat::process_not_listed, "process_not_listed"},
    {LedgerCaveat::process_bytes_unknown, "process_bytes_unknown"},
    {LedgerCaveat::process_matched, "process_matched"},
    {LedgerCaveat::process_below_known, "process_below_known"},
    {LedgerCaveat::other_bytes_unknown, "other_bytes_unknown"},
    {LedgerCaveat::during_driver_call, "during_driver_call"},
    {LedgerCaveat::transient_peak, "transient_peak"},
};
[[nodiscard]] constexpr std::string_view name_of(LedgerCaveat value) {
  return name_in(kLedgerCaveatNames, value);
}

/// Memory of the recorded process on one device at one time, as far as it is known.
struct OwnMemory {
  struct Library {
    std::size_t owner = 0;  ///< of MemoryOwners
    std::uint64_t bytes = 0;
  };
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> reserved_bytes;
  bool began = false;              ///< whether it had allocated memory of the device, and thus created its context, by
                                   ///< then
  bool driver_known = false;       ///< whether calls to the driver were recorded
  bool driver_missing = false;     ///< whether some could not be
  std::vector<Library> libraries;  ///< most bytes first; for PyTorch's allocator, memory beyond the reserved bytes
  std::uint64_t managed_bytes = 0;
  std::optional<std::uint64_t> pinned_host_bytes;  ///< nullopt: no pinning call was recorded

  /// On the device, without context and modules.
  [[nodiscard]] std::uint64_t known_bytes() const;
};

/// Indexes of a device's memory in Overview::devices.
class LedgerIndexes {
 public:
  LedgerIndexes(const Overview& overview, Device device);

  [[nodiscard]] OwnMemory own(const HeldMemory& held, MemoryOwners& owners) const;
  /// Whether the process ever allocated memory of the device.
  [[nodiscard]] bool used() const { return framework_ || driver_ || managed_; }

 private:
  std::optional<std::size_t> framework_;
  std::optional<std::size_t> driver_;
  std::optional<std::size_t> managed_;
  std::optional<std::size_t> host_;
  bool driver_known_ = false;
  bool driver_missing_ = false;
  bool empty_before_ = true;  // nothing was allocated before the first event
};

/// State of the recorded process when the list of a device's processes was taken. In order of time.
enum class ProcessStage : std::uint8_t {
  not_listed,
  starting,  ///< before its first allocation: its context may be half made
  running,
};

/// Lines from the list of a device's processes.
struct ProcessLines {
  std::uint64_t time_ns = 0;
  ProcessStage stage = ProcessStage::not_listed;
  std::optional<std::uint64_t> context_bytes;
  std::vector<LedgerLine> processes;  ///< the others, most bytes first
  std::vector<LedgerCaveat> caveats;
};

/// Context and modules are the memory of the process as reported by the driver, less its known memory, at the time of
/// the list; never below 0. `own`: known memory at that time; null if the device's allocator is unknown.
[[nodiscard]] ProcessLines read_processes(const DeviceProcessesSample& sample, const OwnMemory* own);

/// Device used = the sum of the lines + unexplained.
struct LedgerBreakdown {
  std::optional<std::uint64_t> time_ns;  ///< of the sample; without samples, of the recorded allocations
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> cached_bytes;       ///< reserved but not allocated
  std::vector<LedgerLine> lines;                   ///< PyTorch, libraries, context, processes; each most bytes first
  std::optional<std::int64_t> unexplained_bytes;   ///< negative if the known parts exceed the used memory
  std::optional<std::uint64_t> managed_bytes;      ///< not in the sum, because the part that is on the device is
                                                   ///< unknown
  std::optional<std::uint64_t> pinned_host_bytes;  ///< of the whole process; on the host
  std::optional<std::uint64_t> processes_sampled_at_ns;  ///< when the list of processes was taken
  std::optional<std::uint64_t> transient_peak_bytes;     ///< used at another time, with the caveat of that name
  std::vector<LedgerCaveat> caveats;
};

/// `own` null: the device's allocator is unknown. `processes` null: there was no list.
[[nodiscard]] LedgerBreakdown make_ledger(std::optional<std::uint64_t> time_ns, std::optional<std::uint64_t> used_bytes,
                                          const OwnMemory* own, const ProcessLines* processes,
                                          const MemoryOwners& owners);

/// The entry of the recorded process in a device's list: its own, or the only one of another PID namespace that holds
/// `known_bytes` or more. Null if there is none.
[[nodiscard]] const SampledProcess* find_recorded_process(const DeviceProcessesSample& sample,
                                                          std::uint64_t known_bytes);

}  // namespace tidemark
