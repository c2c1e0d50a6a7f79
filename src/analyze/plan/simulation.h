// Effect of other settings of PyTorch's caching allocator on a recording: the result of `tidemark simulate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/recording_info.h"
#include "store/store.h"

namespace tidemark {

/// The allocator of one device; sizes in bytes, names as in torch.cuda.memory_stats(). nullopt: unknown.
struct AllocatorState {
  std::optional<std::uint64_t> allocated;
  std::optional<std::uint64_t> reserved;
  std::optional<std::uint64_t> largest_free;  ///< block in a segment
  std::optional<std::uint64_t> free_blocks;   ///< number of them
};

/// Outcome for one device of a replay of the requests, or of the recorded run itself.
struct AllocatorOutcome {
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_reserved = 0;
  std::optional<std::uint64_t> peak_active;
  std::optional<std::uint64_t> peak_inactive_split;
  std::optional<std::uint64_t> retries;       ///< the cache was emptied for lack of memory
  std::optional<std::uint64_t> segments;      ///< total reserved from the driver; growth of segments does not count
  std::optional<std::uint64_t> end_segments;  ///< at the end
  AllocatorState at_peak;                     ///< at the recorded peak of allocated memory
  AllocatorState at_end;
};

/// The requests under one setting.
struct SimulatedSettings {
  std::string settings;                   ///< as in PYTORCH_CUDA_ALLOC_CONF; empty: the defaults
  std::vector<AllocatorOutcome> devices;  ///< as in Simulation::devices
  /// Time of an out-of-memory failure that is not in the recording. The replay ends there.
  std::optional<std::uint64_t> out_of_memory_ns;
  std::uint64_t passed_failures = 0;  ///< requests that failed when recorded, and did not here

  [[nodiscard]] std::uint64_t peak_reserved() const;  ///< of all devices
  [[nodiscard]] std::uint64_t retries() const;
};

struct SimulatedDevice {
  Device device;
  AllocatorOutcome recorded;
  std::optional<std::uint64_t> limit;  ///< bytes that the process can reserve; nullopt: no limit
};

enum class LimitSource : std::uint8_t {
  none,
  given,     ///< --memory
  recorded,  ///< as refused requests of the recording show it
};

struct Simulation {
  RecordingInfo recording;
  std::string torch_version;            ///< version of the replaying allocator; empty: Tidemark's model of it
  std::string why_no_torch;             ///< reason for using the model
  bool exact_sizes = false;             ///< the requested sizes are known; otherwise the sizes of blocks replace them
  std::uint64_t blocks_at_start = 0;    ///< blocks that existed before the first event, allocated in an unknown way
  std::uint64_t recorded_failures = 0;  ///< out-of-memory errors of these devices
  bool settings_known = false;          ///< the recorded ones; otherwise taken to be the defaults
  bool counts_pending = false;  ///< some blocks were used by other streams after they were freed: they count until then
  LimitSource limit_source = LimitSource::none;
  bool limit_by_fraction = false;  ///< as torch.cuda.set_per_process_memory_fraction() sets it
  std::vector<SimulatedDevice> devices;
  SimulatedSettings check;              ///< under the recorded settings
  std::vector<SimulatedSettings> runs;  ///< best first
  std::vector<std::string> refused;     ///< "SETTINGS: why", for settings that could not be replayed

  /// "PyTorch 2.11.0", or "Tidemark's model of the allocator".
  [[nodiscard]] std::string replayer() const;
  /// Recorded minus replayed peak reserved bytes, of all devices: 0 if the replay is exact.
  [[nodiscard]] std::int64_t reserved_error() const;
  /// Peak reserved bytes that a setting saves compared with a replay of the recorded settings, of all devices or one.
  /// Negative: it needs more. nullopt if memory ran out before the end.
  [[nodiscard]] std::optional<std::int64_t> saving(const SimulatedSettings& run) const;
  [[nodiscard]] std::optional<std::int64_t> saving(const SimulatedSettings& run, std::size_t device) const;
};

/// Sorts the runs by preference: without new out-of-memory errors first, then by the number of failed requests that
/// succeed, then by peak reserved bytes, then by retries; equal ones stay in order.
void rank_settings(std::vector<SimulatedSettings>& runs);

/// The outcome in the recording itself, for one device.
[[nodiscard]] AllocatorOutcome recorded_outcome(const DeviceSummary& device);

}  // namespace tidemark
