// Why requests failed for want of memory: what was asked, who held the memory, what was cached where the request could
// not use it, and the smallest changes that would have let it pass. docs/commands.md defines the causes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/places.h"
#include "analyze/common/recording.h"
#include "analyze/common/stack_names.h"
#include "analyze/leaks/leaks.h"
#include "analyze/oom/memory.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct ExplainOptions {
  std::optional<std::string> device;      ///< only this one: "cuda:0"
  std::size_t top = 10;                   ///< holders and places to list for each failure; 0 = all
  std::size_t failures = 3;               ///< to explain, equal ones as one, the latest first; 0 = all
  std::optional<std::uint64_t> capacity;  ///< bytes that the device has in all; no file says it
};

enum class OomCause : std::uint8_t { leak, other_process, limit, fragmentation, demand };

/// What refused to give the allocator a new segment.
enum class OomStop : std::uint8_t {
  unknown,
  device,  ///< the driver had too little free
  limit,   ///< the driver had enough: a limit on what this process may reserve
};

/// A cause, and the bytes that prove it.
struct OomFinding {
  OomCause cause = OomCause::demand;
  /// demand: missing even if all cached memory had been usable, at least; fragmentation: cached; limit: free on the
  /// device; leak: leaked by then; other_process: in use outside PyTorch's allocator, at least.
  std::uint64_t bytes = 0;
  bool certain = true;  ///< leak: its steps are named, or an optimizer's; else what repeats may be no step
};

enum class OomRemedy : std::uint8_t {
  free_blocks,         ///< these blocks of one stack, the newest ones, not alive then
  stop_leak,           ///< what leaked not there
  free_device,         ///< so much less in use outside PyTorch
  raise_limit,         ///< by so much at most
  empty_private_pool,  ///< wholly free segments of private pools given back before
  empty_cache_before,  ///< wholly free segments given back before the CUDA graph was captured
  same_stream,         ///< the request made on the stream that has a piece of this size
  smaller_request,     ///< the request by so much smaller
  expandable,          ///< expandable_segments:True: free handles of this size in all could have been given back
};

/// A change that would have let the request pass.
struct OomChange {
  OomRemedy remedy = OomRemedy::free_blocks;
  std::uint64_t bytes = 0;      ///< how much it frees, gives or asks for less
  bool certain = true;          ///< worked out from the segment map or sums; otherwise likely, to be tried
  NamedStack stack;             ///< free_blocks
  std::uint64_t blocks = 0;     ///< free_blocks: so many,
  std::uint64_t of_blocks = 0;  ///< of so many of that stack alive then
};

/// The limit that stopped a request, if it stayed the same from the start: at_least <= limit < below.
struct OomLimit {
  std::uint64_t at_least = 0;  ///< what was reserved at most until then
  std::uint64_t below = 0;     ///< what would have been reserved had the request passed
};

/// A stack's blocks alive at the failure.
struct OomHolder {
  NamedStack stack;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  double share = 0;             ///< of allocated
  std::uint64_t oldest_ns = 0;  ///< when the first of these blocks was allocated; 0 also for those there at the start
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
  bool caching = true;  ///< PyTorch's caching allocator; not on the CPU, where `request` has only `bytes`
  OomRequest request;

  std::uint64_t allocated = 0;
  std::optional<std::uint64_t> reserved;
  std::optional<std::uint64_t> cached;       ///< reserved, and in no block
  std::optional<std::uint64_t> device_free;  ///< by the driver's word
  std::optional<std::uint64_t> outside;      ///< in use on the device but not reserved; known only with a capacity
  std::uint64_t outside_grew = 0;            ///< by so much at least since a moment before; 0 where nothing shows it
  std::optional<OomCache> cache;             ///< none where segments are not known
  bool fitting_piece = false;                ///< OomMemory::fits(): what the file says of pools or settings is not all

  OomStop stop = OomStop::unknown;
  std::optional<OomLimit> limit;         ///< OomStop::limit
  std::optional<std::uint64_t> missing;  ///< bytes that the driver, or at most the limit, was short of
  std::optional<OomCause> cause;         ///< the first of the findings, if certain; none: the file does not tell
  std::vector<OomFinding> findings;      ///< the main one first, what is not certain last
  LeakVerdict leak_verdict = LeakVerdict::insufficient_data;  ///< of the recording up to then
  TrainingSteps::Source step_source = TrainingSteps::Source::none;
  std::size_t step_count = 0;      ///< that the leak analysis found
  std::uint64_t leaked = 0;        ///< bytes of what leaked, alive at the failure
  std::vector<LeakPlace> leaks;    ///< fastest first
  std::vector<OomChange> changes;  ///< certain ones first, by bytes; before them what stops a leak

  std::vector<OomHolder> holders;  ///< most bytes first
  std::uint64_t other_holders = 0;
  std::uint64_t other_bytes = 0;
  Places places;                 ///< the same by place
  std::uint64_t unrecorded = 0;  ///< allocated, in no recorded block
};

struct Explanation {
  RecordingInfo recording;
  std::optional<std::uint64_t> capacity;
  std::vector<DeviceSummary> devices;  ///< those looked at
  std::uint64_t failed_requests = 0;   ///< on them
  std::vector<OomFailure> failures;    ///< latest first
  std::uint64_t other_failures = 0;    ///< beyond the listed ones
};

/// Fails only when the device asked for is not in the recording.
Result<Explanation> analyze_explain(const Store& store, Symbols& symbols, const ExplainOptions& options);

}  // namespace tidemark
