// What PyTorch's autograd does on the calling thread: which node of a graph it evaluates, and how many nodes the thread
// has made. Told through the lane ahead of the allocations that it holds for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collect/process/key_table.h"
#include "collect/ring/layout.h"

namespace tidemark::process {

struct ThreadState;

/// A call of torch::autograd::Engine::evaluate_function that has not returned. Lies in its frame.
struct Evaluation {
  const void* node;  ///< a torch::autograd::Node, which outlives the call
  const Evaluation* enclosing;
};

/// Of the calling thread, the innermost; null when there is none.
extern thread_local constinit const Evaluation* evaluation __attribute__((tls_model("initial-exec")));

/// Where a thread is.
struct AutogradPosition {
  std::uint64_t sequence = 0;       ///< the number of the next node that it makes; 0 = not known
  std::uint64_t node_sequence = 0;  ///< with a node: its number on the thread that made it
  std::uint32_t node_code = 0;      ///< 1 + number of the definition of what it evaluates; 0 = nothing

  bool operator==(const AutogradPosition&) const = default;
};

/// What a lane keeps of it: zero-filled, as the ThreadState that it is part of.
struct AutogradLane {
  AutogradPosition told;  ///< the lane's latest record of it
  std::uint32_t next_node;
  bool thread_told;     ///< autograd's number of the thread that has the lane now
  KeyTable<512> nodes;  ///< what nodes have in common → code of its definition in this lane

  /// With the lane's `reset`.
  void forget() noexcept {
    nodes.clear(false);
    next_node = 0;
    told.node_code = 0;
    told.node_sequence = 0;
  }
};

/// Words of the record that tells `now`; 0 where the lane's latest record does.
inline std::size_t autograd_record_words(const AutogradLane& lane, const AutogradPosition& now) noexcept {
  if (now == lane.told) [[likely]]
    return 0;
  return now.node_code == 0 ? 2 : 3;
}

/// Writes that record. It becomes visible with whatever is committed behind it.
inline void put_autograd_record(AutogradLane* lane, const AutogradPosition& now, std::uint64_t* record) noexcept {
  const auto words = static_cast<std::uint8_t>(now.node_code == 0 ? 2 : 3);
  const ring::RecordHeader header{ring::RecordKind::autograd, 0, 0, words, now.node_code};
  std::memcpy(record, &header, sizeof(header));
  record[1] = now.sequence;
  if (now.node_code != 0) record[2] = now.node_sequence;
  lane->told = now;
}

/// Looks for autograd's functions if it has not found them. To be called when a library of the framework is first heard
/// of: takes the loader's lock. Keeps errno.
void find_autograd_functions() noexcept;

/// Where the calling thread is, after the definition of what it evaluates where that is new in its lane. Keeps errno.
AutogradPosition autograd_position(ThreadState* thread) noexcept;

}  // namespace tidemark::process
