// Causes of out-of-memory errors: the request, the memory that was allocated, cached and free, and the smallest changes
// that would have let the request succeed. docs/commands/explain.md defines the causes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/common/call_sites.h"
#include "analyze/common/holders.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/leaks/leaks.h"
#include "analyze/ledger/host_ledger.h"
#include "analyze/oom/memory.h"
#include "analyze/plan/simulation.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct ExplainOptions {
  Holders holders = {};                      ///< rows of the top allocations; causes and fixes cover all blocks
  std::optional<std::string> device;         ///< only this one: "cuda:0"
  std::size_t top = 10;                      ///< stacks and call sites to list for each failure; 0 = all
  std::size_t failures = 3;                  ///< to explain, equal ones as one, the latest first; 0 = all
  std::optional<std::uint64_t> capacity;     ///< total bytes of the device; nullopt: as sampled, if it was
  const Attribution* attribution = nullptr;  ///< of this store; null: no advice
};

enum class OomCause : std::uint8_t { leak, other_process, limit, fragmentation, demand };
inline constexpr EnumName<OomCause> kOomCauseNames[] = {{OomCause::leak, "leak"},
                                                        {OomCause::other_process, "other_process"},
                                                        {OomCause::limit, "limit"},
                                                        {OomCause::fragmentation, "fragmentation"},
                                                        {OomCause::demand, "demand"}};
[[nodiscard]] constexpr std::string_view name_of(OomCause cause) {
  return name_in(kOomCauseNames, cause);
}

/// The component that refused a new segment to the allocator.
enum class OomRefusedBy : std::uint8_t {
  unknown,
  device,  ///< the driver had too little free memory
  limit,   ///< the driver had enough: a limit on the memory that this process may reserve
};
inline constexpr EnumName<OomRefusedBy> kOomRefusedByNames[] = {
    {OomRefusedBy::unknown, "unknown"}, {OomRefusedBy::device, "device"}, {OomRefusedBy::limit, "limit"}};
[[nodiscard]] constexpr std::string_view name_of(OomRefusedBy refused_by) {
  return name_in(kOomRefusedByNames, refused_by);
}

/// A cause, and the bytes that prove it.
struct OomFinding {
  OomCause cause = OomCause::demand;
  /// demand: missing even if all cached memory had been usable, at least; fragmentation: cached; limit: free on the
  /// device; leak: leaked until then; other_process: used outside PyTorch's allocator, at least.
  /// In a first step, demand may be 0: this request could have been met, but not those after it.
  std::uint64_t bytes = 0;
  bool certain = true;  ///< leak: steps are named, or an optimizer's; otherwise the repeating unit may not be a step
};

enum class OomFixKind : std::uint8_t {
  free_blocks,         ///< these blocks of one stack, the newest ones, not alive then
  stop_leak,           ///< without the leaked memory
  free_device,         ///< less memory used outside PyTorch, by this size
  raise_limit,         ///< raise the limit, by at most this size
  empty_private_pool,  ///< free segments of private pools released before
  empty_cache_before,  ///< free segments released before the CUDA graph was captured
  same_stream,         ///< the request made on the stream with a free block of this size
  smaller_request,     ///< reduce the request by this size
  expandable,          ///< expandable_segments:True: free handles of this total size could have been released
  settings,            ///< other allocator settings, with which a replay met the request
};
inline constexpr EnumName<OomFixKind> kOomFixKindNames[] = {{OomFixKind::free_blocks, "free_blocks"},
                                                            {OomFixKind::stop_leak, "stop_leak"},
                                                            {OomFixKind::free_device, "free_device"},
                                                            {OomFixKind::raise_limit, "raise_limit"},
                                                            {OomFixKind::empty_private_pool, "empty_private_pool"},
                                                            {OomFixKind::empty_cache_before, "empty_cache_before"},
                                                            {OomFixKind::same_stream, "same_stream"},
                                                            {OomFixKind::smaller_request, "smaller_request"},
                                                            {OomFixKind::expandable, "expandable_segments"},
                                                            {OomFixKind::settings, "settings"}};
[[nodiscard]] constexpr std::string_view name_of(OomFixKind kind) {
  return name_in(kOomFixKindNames, kind);
}

/// A change that would have let the request pass.
struct OomFix {
  OomFixKind kind = OomFixKind::free_blocks;
  std::uint64_t bytes = 0;      ///< bytes that it frees, adds or requests less
  bool certain = true;          ///< worked out from the segment map or sums; otherwise likely, to be tried
  NamedStack stack;             ///< free_blocks
  std::uint64_t blocks = 0;     ///< free_blocks: number of blocks to free,
  std::uint64_t of_blocks = 0;  ///< of this number of live blocks of the stack
  std::string settings;         ///< settings: as in PYTORCH_CUDA_ALLOC_CONF
};

/// Advice, with the memory of its blocks at the failure.
struct OomAdvice : Advice {
  /// Whether it is at least the missing memory, including the request if that is avoided too. nullopt: unknown, and
  /// less than the request.
  std::optional<bool> suffices;
};

/// The limit that stopped a request, if it stayed the same from the start: at_least <= limit < below.
struct OomLimit {
  std::uint64_t at_least = 0;  ///< maximum of reserved memory until then
  std::uint64_t below = 0;     ///< reserved memory if the request had succeeded
};

/// A stack's blocks alive at the failure.
struct TopAllocation {
  NamedStack stack;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  double share = 0;             ///< of allocated
  std::uint64_t oldest_ns = 0;  ///< allocation time of the oldest of these blocks; 0 also for blocks that exist at the
                                ///< start
  std::uint64_t newest_ns = 0;
};

/// One failed request, or several equal ones: same device, stack and size. The state is that at the last one.
struct OomFailure {
  Device device;
  std::uint64_t count = 1;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  NamedStack stack;
  std::optional<ThreadInfo> thread;
  std::optional<std::uint64_t> stream;  ///< handle; 0 = the default stream
  std::optional<PoolId> pool;
  bool caching = true;  ///< PyTorch's caching allocator; false on the CPU, where only `bytes` of `request` is set
  OomRequest request;

  std::uint64_t allocated = 0;
  std::optional<std::uint64_t> reserved;
  std::optional<std::uint64_t> cached;    ///< reserved, and in no block
  std::optional<std::uint64_t> capacity;  ///< of the device: as given, else as sampled
  /// As reported by the driver; with sampled_at_ns, worked out from the sample of that time.
  std::optional<std::uint64_t> device_free;
  std::optional<std::uint64_t> sampled_at_ns;
  std::uint64_t sample_margin = 0;               ///< SampledFree::margin; 0: as reported by the driver
  std::optional<std::uint64_t> outside;          ///< used on the device but not reserved; nullopt without a capacity
  std::optional<std::uint64_t> other_processes;  ///< the part of `outside` that other processes use; nullopt: unknown
  std::uint64_t outside_grew = 0;                ///< lower bound of the growth since an earlier time; 0 if unknown
  std::optional<OomCache> cache;                 ///< nullopt if segments are unknown
  bool fitting_block = false;  ///< OomMemory::fits(): the file's data on pools or settings is incomplete

  OomRefusedBy refused_by = OomRefusedBy::unknown;
  std::optional<OomLimit> limit;         ///< OomRefusedBy::limit
  std::optional<std::uint64_t> missing;  ///< bytes that the driver, or at most the limit, was short of
  std::optional<OomCause> cause;         ///< the first of the findings, if certain; nullopt: the file does not contain
                                         ///< enough data
  std::vector<OomFinding> findings;      ///< the main one first, uncertain ones last
  LeakVerdict leak_verdict = LeakVerdict::insufficient_data;  ///< of the recording up to then
  TrainingSteps::Source step_source = TrainingSteps::Source::none;
  std::size_t step_count = 0;            ///< number of steps in the leak analysis
  std::uint64_t leaked = 0;              ///< bytes of leaked blocks alive at the failure
  std::vector<LeakSite> leaks;           ///< fastest first
  std::vector<LeakObject> leak_objects;  ///< indexed by LeakSite::object
  std::vector<OomFix> fixes;             ///< certain ones first, by bytes; fixes of leaks before all others
  std::vector<OomAdvice> advice;         ///< most bytes first

  std::vector<TopAllocation> top_allocations;  ///< most bytes first
  std::uint64_t other_allocations = 0;
  std::uint64_t other_bytes = 0;
  CallSites call_sites;          ///< the same by call site
  std::uint64_t unrecorded = 0;  ///< allocated, in no recorded block
  /// Allocated for what grows with the batch: see grows_with_batch(). nullopt without an attribution.
  std::optional<std::uint64_t> of_batch;
  std::optional<Category> request_category;  ///< of the memory that the request was for; nullopt: unknown
  bool in_optimizer = false;                 ///< the request was made by an optimizer's step
  /// In a training step, and no optimizer had completed one: gradients and optimizer states may be allocated later.
  /// Known with an attribution and the model's tensors.
  bool first_step = false;
  std::uint64_t trainable_bytes = 0;    ///< in a first step: parameters that require gradients
  std::uint64_t gradients_to_come = 0;  ///< in a first step: gradients of them that were not allocated, estimated

  /// What has to be freed for the request to pass: what was missing, or if that is unknown, all of the request.
  [[nodiscard]] std::uint64_t enough_bytes() const {
    return missing.value_or(std::max({request.bytes, request.segment, request.driver}));
  }
};

struct Explanation {
  RecordingInfo recording;
  std::optional<std::uint64_t> capacity;
  std::vector<DeviceSummary> devices;  ///< the analyzed devices
  std::uint64_t failed_requests = 0;   ///< on them
  std::vector<OomFailure> failures;    ///< latest first
  std::uint64_t other_failures = 0;    ///< beyond the listed ones
  std::vector<HostKill> kills;         ///< processes of the job that the kernel killed for lack of host memory
  std::string simulated_by;            ///< allocator that replayed other settings: "PyTorch 2.11.0"; empty: no replay
};

/// Whether the advice depends on the effect of other settings: free memory existed that did not fit.
[[nodiscard]] bool wants_simulation(const Explanation& explanation);
/// Replaces suggested settings by the results of a simulation of the same recording: the best settings with which every
/// request was met, and no others.
void cite_simulation(const Simulation& simulation, Explanation& explanation);

/// Fails only when the recording does not contain the requested device.
Result<Explanation> analyze_explain(const Store& store, Symbols& symbols, const ExplainOptions& options);

}  // namespace tidemark
