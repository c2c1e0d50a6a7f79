// Values of the pickle that do not fit a PickleValue: texts, wide numbers, pairs of integers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/pickle/value.h"

namespace tidemark::pytorch {

/// Every text of the pickle once. Not thread-safe. Views stay valid until the next text is added.
class TextTable {
 public:
  /// The `known` texts come first: their ids are their indexes.
  explicit TextTable(std::span<const std::string_view> known);

  /// Eight bytes after the text must be readable memory.
  std::uint32_t intern(const std::uint8_t* text, std::size_t size) {
    if (size > kShortBytes) return find(text, size);
    // Short texts repeat often ("N/A" for every entry): the most recent ones are compared by their bytes alone.
    const std::uint64_t key = short_key(text, size);
    Recent& recent = recent_[mix(key) % recent_.size()];
    if (recent.key != key) recent = {key, find(text, size)};
    return recent.id;
  }

  [[nodiscard]] std::string_view operator[](std::uint32_t id) const {
    return {bytes_.data() + begins_[id], begins_[id + 1] - begins_[id]};
  }
  [[nodiscard]] std::size_t count() const { return begins_.size() - 1; }

 private:
  static constexpr std::size_t kShortBytes = 7;

  struct Recent {
    std::uint64_t key = 0xFF;  ///< of no text: the length is in the top byte, and these bits are beyond its bytes
    std::uint32_t id = 0;
  };

  static std::uint64_t short_key(const std::uint8_t* text, std::size_t size) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text, sizeof bytes);
    return (bytes & ((std::uint64_t{1} << (8 * size)) - 1)) | std::uint64_t{size} << 56;
  }
  std::uint32_t find(const std::uint8_t* text, std::size_t size);

  std::vector<char> bytes_;
  std::vector<std::size_t> begins_ = {0};  // and the end of the last
  IdIndex index_;
  std::array<Recent, 64> recent_;
};

/// Integers of more than 60 bits, and floating-point numbers. Not thread-safe.
class NumberTable {
 public:
  PickleValue integer(std::int64_t value) {
    return PickleValue::fits(value) ? PickleValue::of_integer(value)
                                    : wide(static_cast<std::uint64_t>(value), value < 0);
  }
  /// For 2^63 or more.
  PickleValue large_integer(std::uint64_t value) { return wide(value, false); }
  PickleValue real(double value) {
    reals_.push_back(value);
    return PickleValue(Tag::real, static_cast<std::uint32_t>(reals_.size() - 1));
  }

  /// False when the value is no integer, or one that does not fit.
  bool get(PickleValue from, std::uint64_t& value) const {
    if (from.tag() == Tag::integer && from.integer() >= 0) {
      value = static_cast<std::uint64_t>(from.integer());
      return true;
    }
    if (from.tag() != Tag::wide_integer || wide_[from.id()].negative) return false;
    value = wide_[from.id()].bits;
    return true;
  }
  bool get(PickleValue from, std::int64_t& value) const {
    if (from.tag() == Tag::integer) {
      value = from.integer();
      return true;
    }
    if (from.tag() != Tag::wide_integer) return false;
    const Wide& wide = wide_[from.id()];
    if (!wide.negative && wide.bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return false;
    value = static_cast<std::int64_t>(wide.bits);
    return true;
  }
  /// An address or a handle: PyTorch's C++ pickler writes values with the top bit set as negative numbers.
  bool get_address(PickleValue from, std::uint64_t& value) const {
    if (get(from, value)) return true;
    std::int64_t negative = 0;
    if (!get(from, negative)) return false;
    value = static_cast<std::uint64_t>(negative);
    return true;
  }
  bool get(PickleValue from, double& value) const {
    if (from.tag() == Tag::integer) {
      value = static_cast<double>(from.integer());
      return true;
    }
    if (from.tag() != Tag::real) return false;
    value = reals_[from.id()];
    return true;
  }
  [[nodiscard]] bool is_nan(PickleValue value) const {
    return value.tag() == Tag::real && std::isnan(reals_[value.id()]);
  }

 private:
  struct Wide {
    std::uint64_t bits = 0;
    bool negative = false;
  };
  PickleValue wide(std::uint64_t bits, bool negative) {
    wide_.push_back({bits, negative});
    return PickleValue(Tag::wide_integer, static_cast<std::uint32_t>(wide_.size() - 1));
  }

  std::vector<Wide> wide_;
  std::vector<double> reals_;
};

using IntegerPair = std::pair<std::uint64_t, std::uint64_t>;

/// Stores every pair of integers once: the newest PyTorch writes the id of a memory pool as a pair for each trace
/// entry. Not thread-safe.
class PairTable {
 public:
  PickleValue intern(IntegerPair pair) {
    if (last_ < pairs_.size() && pairs_[last_] == pair) return PickleValue(Tag::pair, last_);
    last_ = index_.find_or_make(
        mix(pair.first ^ mix(pair.second)), [&](std::uint32_t id) { return pairs_[id] == pair; },
        [&] {
          pairs_.push_back(pair);
          return static_cast<std::uint32_t>(pairs_.size() - 1);
        });
    return PickleValue(Tag::pair, last_);
  }
  [[nodiscard]] IntegerPair operator[](std::uint32_t id) const { return pairs_[id]; }

 private:
  std::vector<IntegerPair> pairs_;
  IdIndex index_;
  std::uint32_t last_ = 0;
};

/// All of them.
struct PickleTables {
  explicit PickleTables(std::span<const std::string_view> known) : texts(known) {}

  TextTable texts;
  NumberTable numbers;
  PairTable pairs;
};

}  // namespace tidemark::pytorch
