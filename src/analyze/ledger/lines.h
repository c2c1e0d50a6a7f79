// The lines of a ledger at one time, from what was held then and what the driver reported of the device.
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
  ProcessKind process_kind = ProcessKind::recorded;  ///< process; `recorded` on devices whose allocator is not known
};

/// What limits the accuracy of a ledger.
enum class LedgerCaveat : std::uint8_t {
  no_samples,             ///< the recording has no samples of devices
  device_not_sampled,     ///< it has some, but none is known to be this device
  no_sample_yet,          ///< the first was taken later
  used_unknown,           ///< the driver never said how much of the device was used
  no_events,              ///< nothing was recorded: there is no time to look at
  reserved_unknown,       ///< what PyTorch had reserved was not known yet
  allocator_unknown,      ///< the program's index of the device is unknown: only what the driver reports
  libraries_in_context,   ///< no calls to the driver were recorded: `tidemark run --driver on` would split the context
  driver_calls_missing,   ///< some or all calls to the driver could not be recorded: libraries may be wrong
  processes_unknown,      ///< the driver did not list the processes of the device
  process_not_listed,     ///< the recorded process was not in the list of processes
  process_bytes_unknown,  ///< it was, but the driver did not say how much it held
  process_matched,        ///< a process of another PID namespace was taken for the recorded one
  process_below_known,    ///< the driver reports less than it is known to hold
  other_bytes_unknown,    ///< the driver did not say how much some other process held
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

/// What the recorded process is known to have held on one device at one time.
struct OwnMemory {
  struct Library {
    std::size_t owner = 0;  ///< of MemoryOwners
    std::uint64_t bytes = 0;
  };
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> reserved_bytes;
  bool began = false;              ///< whether it had allocated memory of the device by then, so its context was made
  bool driver_known = false;       ///< whether calls to the driver were recorded
  bool driver_missing = false;     ///< whether some could not be
  std::vector<Library> libraries;  ///< most bytes first; of PyTorch's allocator what it has beyond the reserved bytes
  std::uint64_t managed_bytes = 0;
  std::optional<std::uint64_t> pinned_host_bytes;  ///< none: no call that pins was recorded

  /// On the device, without context and modules.
  [[nodiscard]] std::uint64_t known_bytes() const;
};

/// Where a device's memory is in Overview::devices.
class LedgerIndexes {
 public:
  LedgerIndexes(const Overview& overview, Device device);

  [[nodiscard]] OwnMemory own(const HeldMemory& held, MemoryOwners& owners) const;
  /// Whether the process had memory of the device at some time.
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

/// Where the recorded process was when a list of a device's processes was taken. In order of time.
enum class ProcessStage : std::uint8_t {
  not_listed,
  starting,  ///< before its first allocation: its context may be half made
  running,
};

/// What the list of a device's processes says.
struct ProcessLines {
  std::uint64_t time_ns = 0;
  ProcessStage stage = ProcessStage::not_listed;
  std::optional<std::uint64_t> context_bytes;
  std::vector<LedgerLine> processes;  ///< the others, most bytes first
  std::vector<LedgerCaveat> caveats;
};

/// Context and modules are the memory of the process as reported by the driver, less what is known of it, at the time
/// of the list; never below 0. `own`: at that time; null where the device's allocator is not known.
[[nodiscard]] ProcessLines read_processes(const DeviceProcessesSample& sample, const OwnMemory* own);

/// Device used = the sum of the lines + unexplained.
struct LedgerBreakdown {
  std::optional<std::uint64_t> time_ns;  ///< of the sample; without samples, of what was held
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> cached_bytes;       ///< reserved but not allocated
  std::vector<LedgerLine> lines;                   ///< PyTorch, libraries, context, processes; each most bytes first
  std::optional<std::int64_t> unexplained_bytes;   ///< below 0 where more is known of than is used
  std::optional<std::uint64_t> managed_bytes;      ///< not in the sum: how much of it is on the device is not known
  std::optional<std::uint64_t> pinned_host_bytes;  ///< of the whole process; on the host
  std::optional<std::uint64_t> processes_sampled_at_ns;  ///< when the list of processes was taken
  std::optional<std::uint64_t> transient_peak_bytes;     ///< used at another time, with the caveat of that name
  std::vector<LedgerCaveat> caveats;
};

/// `own` null: the device's allocator is not known. `processes` null: there was no list.
[[nodiscard]] LedgerBreakdown make_ledger(std::optional<std::uint64_t> time_ns, std::optional<std::uint64_t> used_bytes,
                                          const OwnMemory* own, const ProcessLines* processes,
                                          const MemoryOwners& owners);

}  // namespace tidemark
