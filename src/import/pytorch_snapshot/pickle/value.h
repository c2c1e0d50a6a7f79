// A value on the unpickler's stack: 64 bits that encode its kind and payload, never an object.
//
//   integer    63 ......................... 4 | 3..0      payload: signed, 60 bits
//   others     63 ... 32 | 31 ............. 4 | 3..0
//              id        | memo slot          | tag       slot: see PickleMemo
#pragma once

#include <cstdint>

namespace tidemark::pytorch {

enum class Tag : std::uint8_t {
  unset,  ///< only in the memo: an empty slot
  none,
  boolean,       ///< id: 0 or 1
  integer,       ///< within 60 bits
  wide_integer,  ///< id: of NumberTable
  real,          ///< id: of NumberTable
  text,          ///< id: of TextTable
  pair,          ///< a tuple of two integers that are not negative; id: of PairTable
  frame,         ///< a frame's dict, made by the ContainerBuilder; id: LocationId
  // From here on, items may be added to the value after it was memoized.
  empty_list,
  empty_dict,
  // Made by the ContainerBuilder:
  stack,      ///< a list of frames; id: StackId
  entry,      ///< a trace entry's dict; id: of EntryColumns
  block,      ///< a block's dict; id: its number
  container,  ///< another list or dict; id: of ContainerTable
  // Made by the unpickler:
  skipped,  ///< anything a snapshot has no use for: bytes, other tuples, lists of numbers
};

inline constexpr Tag kFirstMutable = Tag::empty_list;

class PickleValue {
 public:
  /// The slot of a value that was fetched from the memo.
  static constexpr std::uint32_t kFetched = 0x0FFF'FFFF;
  static constexpr std::uint32_t kMaxSlot = kFetched - 1;
  static constexpr std::int64_t kIntegerLimit = std::int64_t{1} << 59;

  constexpr PickleValue() = default;
  constexpr explicit PickleValue(Tag tag, std::uint32_t id = 0, std::uint32_t slot = 0)
      : bits_(std::uint64_t{id} << 32 | std::uint64_t{slot} << 4 | static_cast<std::uint64_t>(tag)) {}

  [[nodiscard]] static constexpr bool fits(std::int64_t value) {
    return value >= -kIntegerLimit && value < kIntegerLimit;
  }
  /// `value` must fit.
  [[nodiscard]] static constexpr PickleValue of_integer(std::int64_t value) {
    PickleValue made(Tag::integer);
    made.bits_ |= static_cast<std::uint64_t>(value) << 4;
    return made;
  }

  [[nodiscard]] constexpr Tag tag() const { return static_cast<Tag>(bits_ & 0xF); }
  [[nodiscard]] constexpr std::uint32_t id() const { return static_cast<std::uint32_t>(bits_ >> 32); }
  [[nodiscard]] constexpr std::int64_t integer() const { return static_cast<std::int64_t>(bits_) >> 4; }
  /// For Tag::boolean.
  [[nodiscard]] constexpr bool boolean() const { return id() != 0; }
  /// 0: never memoized; else the memo's index + 1, or kFetched.
  [[nodiscard]] constexpr std::uint32_t slot() const { return static_cast<std::uint32_t>(bits_) >> 4; }
  [[nodiscard]] constexpr bool is_mutable() const { return tag() >= kFirstMutable; }
  [[nodiscard]] constexpr PickleValue with_slot(std::uint32_t slot) const { return PickleValue(tag(), id(), slot); }

 private:
  std::uint64_t bits_ = 0;
};

static_assert(sizeof(PickleValue) == 8);

}  // namespace tidemark::pytorch
