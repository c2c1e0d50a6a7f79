// State of PyTorch's autograd on the calling thread: the node being evaluated, and the number of nodes the thread has
// made. Written to the lane before the allocations that it applies to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collect/process/key_table.h"
#include "collect/ring/layout.h"

namespace tidemark::process {

struct ThreadState;

/// A call of torch::autograd::Engine::evaluate_function that has not returned. Lives in the call's stack frame.
struct Evaluation {
  const void* node;  ///< a torch::autograd::Node, which outlives the call
  const Evaluation* enclosing;
};

/// The innermost evaluation of the calling thread; null if there is none.
extern thread_local constinit const Evaluation* evaluation __attribute__((tls_model("initial-exec")));

/// The autograd position of a thread.
struct AutogradPosition {
  std::uint64_t sequence = 0;       ///< number of the next node that it makes; 0 = unknown
  std::uint64_t node_sequence = 0;  ///< with a node: its number on the thread that made it
  std::uint32_t node_code = 0;      ///< 1 + number of the evaluated node's definition; 0 = no node

  bool operator==(const AutogradPosition&) const = default;
};

/// Autograd state of a lane: zero-filled, as the ThreadState that contains it.
struct AutogradLane {
  AutogradPosition told;  ///< in the lane's latest record of it
  std::uint32_t next_node;
  bool thread_told;     ///< whether autograd's number of the current thread was written
  KeyTable<512> nodes;  ///< class and thread of nodes → code of the definition in this lane

  /// Called with the lane's `reset`.
  void forget() noexcept {
    nodes.clear(false);
    next_node = 0;
    told.node_code = 0;
    told.node_sequence = 0;
  }
};

/// Words of the record for `now`; 0 if the lane's latest record is equal.
inline std::size_t autograd_record_words(const AutogradLane& lane, const AutogradPosition& now) noexcept {
  if (now == lane.told) [[likely]]
    return 0;
  return now.node_code == 0 ? 2 : 3;
}

/// Writes that record. It becomes visible with the next commit.
inline void put_autograd_record(AutogradLane* lane, const AutogradPosition& now, std::uint64_t* record) noexcept {
  const auto words = static_cast<std::uint8_t>(now.node_code == 0 ? 2 : 3);
  const ring::RecordHeader header{ring::RecordKind::autograd, 0, 0, words, now.node_code};
  std::memcpy(record, &header, sizeof(header));
  record[1] = now.sequence;
  if (now.node_code != 0) record[2] = now.node_sequence;
  lane->told = now;
}

/// Looks up autograd's functions unless they were found. Call it when a library of the framework is first seen: it
/// takes the loader's lock. Keeps errno.
void find_autograd_functions() noexcept;

/// The position of the calling thread; first defines the evaluated node if it is new in the lane. Keeps errno.
AutogradPosition autograd_position(ThreadState* thread) noexcept;

}  // namespace tidemark::process
