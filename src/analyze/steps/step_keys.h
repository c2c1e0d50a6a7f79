// The allocations of a device as a sequence of keys, for finding what repeats in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/store.h"

namespace tidemark {

/// An allocation that may tell steps apart.
struct StepKey {
  std::uint64_t count = 0;
  std::size_t first = 0;      ///< its first position in the sequence
  double mean_live = 0;       ///< bytes alive on the device before its allocations, on average
  bool anchor = false;        ///< whether a step may begin with it
  std::uint16_t deciles = 0;  ///< one bit for each tenth of the sequence in which it occurs
};

/// Where a key occurs.
struct Occurrence {
  std::uint32_t position = 0;  ///< into KeySequence::blocks
  std::uint32_t key = 0;       ///< index into KeySequence::keys
};

struct KeySequence {
  bool by_stack = false;                ///< keys are stacks; otherwise four sizes in a row
  std::vector<BlockId> blocks;          ///< of the device, in order of birth; not what a window begins with
  std::vector<std::uint64_t> live;      ///< bytes alive on the device before each of them
  std::vector<StepKey> keys;            ///< only those that occur all over the sequence
  std::vector<Occurrence> occurrences;  ///< of these keys, in order
};

[[nodiscard]] KeySequence make_key_sequence(const Store& store, std::size_t device);

/// How alike the periods between successive boundaries are: 0 to 1, the geometric mean of two shares, that of keys and
/// that of occurrences. A key counts with the share of periods in which it occurs as often as it does in most, and not
/// at all below 70%. `boundaries` are positions in increasing order, at least two.
[[nodiscard]] double step_score(const KeySequence& sequence, const std::vector<std::uint32_t>& boundaries);

}  // namespace tidemark
