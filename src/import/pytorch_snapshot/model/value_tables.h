// Values of the pickle that do not fit a word.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "import/pytorch_snapshot/model/id_index.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/pickle/word.h"

namespace tidemark::pytorch {

/// Integers of more than 60 bits, and floating-point numbers. Not thread-safe.
class NumberTable {
 public:
  Word integer(std::int64_t value) {
    return Word::fits(value) ? Word::of_integer(value) : wide(static_cast<std::uint64_t>(value), value < 0);
  }
  /// Of 2^63 or more.
  Word large_integer(std::uint64_t value) { return wide(value, false); }
  Word real(double value) {
    reals_.push_back(value);
    return Word(Tag::real, static_cast<std::uint32_t>(reals_.size() - 1));
  }

  /// False when the word is no integer, or one that does not fit.
  bool get(Word word, std::uint64_t& value) const {
    if (word.tag() == Tag::integer && word.integer() >= 0) {
      value = static_cast<std::uint64_t>(word.integer());
      return true;
    }
    if (word.tag() != Tag::wide_integer || wide_[word.id()].negative) return false;
    value = wide_[word.id()].bits;
    return true;
  }
  bool get(Word word, std::int64_t& value) const {
    if (word.tag() == Tag::integer) {
      value = word.integer();
      return true;
    }
    if (word.tag() != Tag::wide_integer) return false;
    const Wide& wide = wide_[word.id()];
    if (!wide.negative && wide.bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return false;
    value = static_cast<std::int64_t>(wide.bits);
    return true;
  }
  /// An address or a handle: PyTorch's C++ pickler writes those with the top bit set as negative numbers.
  bool get_address(Word word, std::uint64_t& value) const {
    if (get(word, value)) return true;
    std::int64_t negative = 0;
    if (!get(word, negative)) return false;
    value = static_cast<std::uint64_t>(negative);
    return true;
  }
  bool get(Word word, double& value) const {
    if (word.tag() == Tag::integer) {
      value = static_cast<double>(word.integer());
      return true;
    }
    if (word.tag() != Tag::real) return false;
    value = reals_[word.id()];
    return true;
  }

 private:
  struct Wide {
    std::uint64_t bits = 0;
    bool negative = false;
  };
  Word wide(std::uint64_t bits, bool negative) {
    wide_.push_back({bits, negative});
    return Word(Tag::wide_integer, static_cast<std::uint32_t>(wide_.size() - 1));
  }

  std::vector<Wide> wide_;
  std::vector<double> reals_;
};

/// Every pair of integers once: the newest PyTorch writes a pool's for each trace entry. Not thread-safe.
class PoolTable {
 public:
  Word intern(PoolId pool) {
    if (last_ < pools_.size() && pools_[last_] == pool) return Word(Tag::pool, last_);
    last_ = index_.find_or_make(
        mix(pool.first ^ mix(pool.second)), [&](std::uint32_t id) { return pools_[id] == pool; },
        [&] {
          pools_.push_back(pool);
          return static_cast<std::uint32_t>(pools_.size() - 1);
        });
    return Word(Tag::pool, last_);
  }
  [[nodiscard]] PoolId operator[](std::uint32_t id) const { return pools_[id]; }

 private:
  std::vector<PoolId> pools_;
  IdIndex index_;
  std::uint32_t last_ = 0;
};

}  // namespace tidemark::pytorch
