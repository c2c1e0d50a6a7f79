// The requests of a recorded program to the allocator of its GPUs, in order: input of a simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct Request {
  enum class Kind : std::uint8_t {
    allocate,
    free,           ///< the block is free again: no other stream uses it any more
    failed,         ///< an allocation that failed when it was recorded
    pool_released,  ///< the program gave a private pool up: its free segments can be released from now on
    empty_cache,    ///< torch.cuda.empty_cache()
    moment,         ///< nothing: the device's recorded peak of allocated memory
  };
  Kind kind = Kind::allocate;
  std::uint64_t time_ns = 0;
  std::uint64_t size = 0;    ///< bytes: allocate, failed
  std::uint32_t slot = 0;    ///< allocate, free: number of the block among the blocks alive at one time
  std::uint16_t device = 0;  ///< index into Requests::devices
  std::uint16_t stream = 0;  ///< index into Store::streams
  std::uint16_t pool = 0;    ///< index into Store::pools; 0 is the default
};

/// A GPU and the state of its allocator in the recording; sizes in bytes.
struct RequestDevice {
  std::uint8_t index = 0;  ///< into Overview::devices
  /// Memory that the program could reserve, from refused requests: reserved plus free memory when the driver refused
  /// one, otherwise the maximum of reserved memory. nullopt if all were granted.
  std::optional<std::uint64_t> limit;
  bool limit_by_fraction = false;  ///< torch.cuda.set_per_process_memory_fraction(): the GPU had enough
  std::uint64_t segments = 0;      ///< taken from the driver
  bool segments_known = false;
};

struct Requests {
  std::vector<RequestDevice> devices;
  bool exact_sizes = false;    ///< the requested sizes are known; otherwise the sizes of blocks replace them
  bool has_pending = false;    ///< frees that another stream's use put off
  std::uint64_t at_start = 0;  ///< blocks that were there before the first event
  std::uint64_t slots = 0;     ///< blocks alive at one time, at most
};

/// The GPUs of PyTorch's caching allocator, or the one named by `device` ("cuda:0"). Fails if there is none.
[[nodiscard]] Result<Requests> find_requests(const Store& store, const std::optional<std::string>& device);

/// Calls `take` for each request in order, until it returns false. A release of memory is taken for one of
/// empty_cache() unless the allocator made it itself, for lack of memory, as the stacks or the limit show.
void visit_requests(const Store& store, const Requests& requests, const std::function<bool(const Request&)>& take);

/// Segments that were released together, and the next event.
struct Release {
  const SegmentChange* first = nullptr;
  const SegmentChange* end = nullptr;   ///< behind the last one, changes of other devices among them
  const SegmentChange* next = nullptr;  ///< the next reservation, with no event in between; null: none
  std::uint64_t reserved_before = 0;
  bool failure_next = false;  ///< a request failed next
};

/// Calls take(release, by_allocator) for each release of the device in order. `by_allocator`: malloc() made room for a
/// request, as the stacks or the limit show; otherwise the program emptied the cache.
void find_releases(const Store& store, std::uint8_t device, const std::function<void(const Release&, bool)>& take);

/// The same for sources without segments: drops of the allocator's own total of reserved memory.
void find_drops(const Store& store, std::uint8_t device, const std::function<void(const TotalsChange&, bool)>& take);

}  // namespace tidemark
