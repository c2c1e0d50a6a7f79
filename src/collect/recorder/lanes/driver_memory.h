// Memory that calls of the CUDA driver took and released, as events on the devices cuda-driver:N, cuda-managed:N and
// cuda-host.
//
// A free carries no size and no device, so memory in use is kept by address. Physical memory (cuMemCreate) is free once
// all references to its handle are released and nothing is mapped from it; its handle serves as its address. A pool is
// one block for each time that it grew, at its handle + 0, 1, ...; memory it releases is taken off the latest block.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "collect/ring/layout.h"
#include "trace/event.h"
#include "trace/kept_definitions.h"

namespace tidemark {

/// A call as recorded by the process: the numbers of ring::DriverCall in their order, 0 if it has fewer.
struct DriverCallRecord {
  ring::DriverCall call = ring::DriverCall::free;
  std::int8_t device = -1;
  std::uint64_t numbers[3] = {};
  bool of_allocator = false;  ///< PyTorch's caching allocator made it for its segments (ring::RecordKind::allocator)
};

/// Takes the calls of all threads in the order of time. Memory grows with the program's live blocks. Not thread-safe.
class DriverMemory {
 public:
  /// Appends the events of the call. `base` has their time, thread and stack.
  void take(const DriverCallRecord& call, const Event& base, std::vector<Event>& out);

  /// Adds the definitions that later events may refer to.
  void keep(KeptDefinitions& definitions) const;

  /// Calls that released memory without a recorded allocation.
  [[nodiscard]] std::uint64_t unmatched() const { return unmatched_; }

 private:
  struct Handle {
    Device device;
    std::uint64_t references = 0;
    std::uint64_t mappings = 0;
    bool counted = false;  ///< its memory belongs to this process
  };
  struct Mapping {
    std::uint64_t size = 0;
    std::uint64_t handle = 0;
  };
  struct Piece {
    std::uint64_t size = 0;
    StackId stack;
    ThreadId thread;
  };
  struct Pool {
    Device device;
    std::vector<Piece> pieces;
    std::uint64_t bytes = 0;
  };

  void allocate(Device device, std::uint64_t address, std::uint64_t size, const Event& base, std::vector<Event>& out);
  void free(std::uint64_t address, bool may_be_of_a_pool, const Event& base, std::vector<Event>& out);
  void create(Device device, std::uint64_t handle, std::uint64_t size, const Event& base, std::vector<Event>& out);
  void adopt(std::uint64_t handle);
  void release(std::uint64_t handle, const Event& base, std::vector<Event>& out);
  void map(std::uint64_t address, std::uint64_t size, std::uint64_t handle);
  void unmap(std::uint64_t address, std::uint64_t size, const Event& base, std::vector<Event>& out);
  void release_if_unused(std::uint64_t handle, const Event& base, std::vector<Event>& out);
  void resize_pool(Device device, std::uint64_t key, std::uint64_t bytes, const Event& base, std::vector<Event>& out);
  void reset(Device device, const Event& base, std::vector<Event>& out);

  std::unordered_map<std::uint64_t, Device> blocks_;   // by address
  std::unordered_map<std::uint64_t, Handle> handles_;  // by handle
  std::map<std::uint64_t, Mapping> mappings_;          // by address
  std::unordered_map<std::uint64_t, Pool> pools_;      // by handle
  std::uint64_t unmatched_ = 0;
};

}  // namespace tidemark
