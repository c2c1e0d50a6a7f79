// Records: the content of definitions and samples frames. A payload is a sequence of
//
//   varint kind | varint body length | body
//
// and a body is a sequence of fields: the members listed in trace/record_members.h. A reader skips unknown kinds, and
// remaining bytes at a body's end.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/ids.h"
#include "trace/format.h"
#include "trace/record_members.h"
#include "trace/varint.h"

namespace tidemark {

/// Applies a codec to an item of a record's list of members; false at the end of the record. The record is const for a
/// writer.
template <typename Codec, typename Record>
struct MemberVisitor {
  Codec& codec;
  Record& record;

  template <typename Member>
  bool operator()(Member member) const {
    codec.field(record.*member);
    return true;
  }
  template <typename Member>
  bool operator()(RecordMembers::Time<Member> time) const {
    return (*this)(time.member);
  }
  template <auto kNone, typename Member>
  bool operator()(RecordMembers::NoneIs<kNone, Member> optional) const {
    codec.template field_or<kNone>(record.*optional.member);
    return true;
  }
  template <typename Member>
  bool operator()(RecordMembers::Last<Member> last) const {
    codec.last_field(record.*last.member);
    return true;
  }
  template <typename Member>
  bool operator()(RecordMembers::OnlyWith<Member> condition) const {
    return record.*condition.member;
  }
  bool operator()(RecordMembers::AddedLater /*item*/) const { return !codec.at_end(); }
};
template <typename Codec, typename Record>
void visit_members(Codec& codec, Record& record) {
  const MemberVisitor<Codec, Record> visit{codec, record};
  std::apply([&](auto... item) { (void)(visit(item) && ...); }, RecordMembers::of(&record));
}

/// Encoding of an id: 0 for none (or an undefined id), else id + 1.
inline std::uint32_t id_code(std::uint32_t id, std::size_t defined) {
  return id < defined ? id + 1 : 0;
}

/// Appends fields to a record's body, which it empties first. Undefined ids count as none.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::uint8_t>& out, const DefinedIds& defined = {}) : out_(out), defined_(defined) {
    out_.clear();
  }

  FieldWriter& number(std::uint64_t value) {
    std::uint8_t bytes[kMaxVarintBytes];
    out_.insert(out_.end(), bytes, put_varint(bytes, value));
    return *this;
  }

  template <std::unsigned_integral Number>
  void field(Number value) {
    number(value);
  }
  template <std::signed_integral Number>
  void field(Number value) {
    number(zigzag(value));
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void field(Enum value) { field(static_cast<std::underlying_type_t<Enum>>(value)); }
  void field(std::string_view text) {
    text = text.substr(0, format::kMaxStringBytes);
    number(text.size());
    out_.insert(out_.end(), text.begin(), text.end());
  }
  template <typename Tag>
  void field(Id<Tag> id) {
    number(id_code(id.value, defined_.count(id)));
  }
  void field(SampledDeviceId id) { number(id.value); }
  /// 0 for none, else the number + 1. The largest number counts as none.
  template <typename Number>
  void field(const std::optional<Number>& value) {
    number(value ? code_of(*value) + 1 : 0);
  }
  template <typename Item>
  void field(const std::vector<Item>& items) {
    number(items.size());
    for (const Item& item : items) field(item);
  }
  template <Described Record>
  void field(const Record& record) {
    if constexpr (!RecordMembers::has_length(static_cast<const Record*>(nullptr))) return visit_members(*this, record);
    std::vector<std::uint8_t> body;
    FieldWriter own(body, defined_);
    visit_members(own, record);
    number(body.size());
    out_.insert(out_.end(), body.begin(), body.end());
  }
  template <auto kNone, typename Number>
  void field_or(const std::optional<Number>& value) {
    field(value.value_or(kNone));
  }
  template <typename Value>
  void last_field(const std::optional<Value>& value) {
    if (value) field(*value);
  }
  /// `value` as its difference to another.
  void difference(std::uint64_t from, std::uint64_t value) { number(delta_code(from, value)); }
  /// The difference as a number, for `value` >= `from`.
  void increase(std::uint32_t from, std::uint32_t value) { number(value - from); }
  static constexpr bool at_end() { return false; }

 private:
  template <typename Number>
  static std::uint64_t code_of(Number value) {
    if constexpr (std::signed_integral<Number>) return zigzag(value);
    return static_cast<std::uint64_t>(value);
  }

  std::vector<std::uint8_t>& out_;
  DefinedIds defined_;
};

/// Adds a record to the last of several payloads, or to a new one if that is full. One record adds at most some 6 MiB
/// (process: six strings), so that no payload comes near format::kMaxPayloadBytes.
inline void append_record(std::uint8_t kind, const std::vector<std::uint8_t>& body,
                          std::vector<std::vector<std::uint8_t>>& payloads) {
  constexpr std::size_t kFullPayload = std::size_t{1} << 20;
  if (payloads.empty() || payloads.back().size() >= kFullPayload) payloads.emplace_back();
  std::vector<std::uint8_t>& payload = payloads.back();
  std::uint8_t head[2 * kMaxVarintBytes];
  std::uint8_t* end = put_varint(put_varint(head, kind), body.size());
  payload.insert(payload.end(), head, end);
  payload.insert(payload.end(), body.begin(), body.end());
}

/// Reads fields from a record's body. After a missing field, or a number out of its member's range, ok() is false and
/// all fields are 0 or empty.
class FieldReader {
 public:
  /// Maximum length of a list. Recordings have far shorter ones.
  static constexpr std::uint64_t kMaxListed = std::uint64_t{1} << 16;

  /// At least kMaxVarintBytes of readable memory follow `body`.
  explicit FieldReader(std::span<const std::uint8_t> body, const DefinedIds& defined = {})
      : at_(body.data()), end_(body.data() + body.size()), defined_(defined) {}

  std::uint64_t number() {
    if (at_ >= end_) return fail();
    const std::uint64_t value = get_varint(at_);
    return at_ <= end_ ? value : fail();
  }
  std::span<const std::uint8_t> bytes() {
    const std::uint64_t size = number();
    if (!ok_ || size > static_cast<std::uint64_t>(end_ - at_)) {
      fail();
      return {};
    }
    const std::span<const std::uint8_t> found(at_, static_cast<std::size_t>(size));
    at_ += size;
    return found;
  }

  template <std::integral Number>
  void field(Number& value) {
    value = from_code<Number>(number());
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void field(Enum& value) {
    const std::uint64_t code = number();
    if constexpr (std::is_signed_v<std::underlying_type_t<Enum>>) {
      value = static_cast<Enum>(from_code<std::underlying_type_t<Enum>>(code));
    } else {
      constexpr EnumBounds<Enum> kBounds = RecordMembers::bounds(std::type_identity<Enum>());
      value = code <= static_cast<std::uint64_t>(kBounds.last) ? static_cast<Enum>(code) : kBounds.otherwise;
    }
  }
  void field(std::string& text) {
    const auto found = bytes();
    text.assign(found.begin(), found.end());
  }
  template <typename Tag>
  void field(Id<Tag>& id) {
    const std::uint64_t code = number();
    if (code > defined_.count(id)) fail();
    id.value = ok_ ? static_cast<std::uint32_t>(code) - 1 : Id<Tag>::kNone;  // code 0 is none, which is all ones
  }
  void field(SampledDeviceId& id) { field(id.value); }
  template <typename Number>
  void field(std::optional<Number>& value) {
    const std::uint64_t code = number();
    if (code != 0) value = from_code<Number>(code - 1);
  }
  template <typename Item>
  void field(std::vector<Item>& items) {
    const std::uint64_t count = number();
    if (count > kMaxListed) fail();
    for (std::uint64_t n = 0; n < count && ok_; ++n) field(items.emplace_back());
  }
  template <Described Record>
  void field(Record& record) {
    if constexpr (!RecordMembers::has_length(static_cast<const Record*>(nullptr))) return visit_members(*this, record);
    FieldReader own(bytes(), defined_);
    visit_members(own, record);
    require(own.ok());
  }
  template <auto kNone, typename Number>
  void field_or(std::optional<Number>& value) {
    Number found{};
    field(found);
    value = found <= Number{kNone} ? std::nullopt : std::optional(found);
  }
  template <typename Value>
  void last_field(std::optional<Value>& value) {
    if (!at_end()) field(value.emplace());
  }
  void difference(std::uint64_t from, std::uint64_t& value) { value = apply_delta(from, number()); }
  void increase(std::uint32_t from, std::uint32_t& value) {
    field(value);
    value += from;  // a sum that wraps around is smaller
  }

  /// Fails if the read values are invalid.
  void require(bool good) {
    if (!good) fail();
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return at_ == end_; }

 private:
  std::uint64_t fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }
  template <std::integral Number>
  Number from_code(std::uint64_t code) {
    if constexpr (std::is_same_v<Number, bool>) return (code & 1) != 0;  // later versions may add other flags
    if constexpr (std::signed_integral<Number>) {
      const std::int64_t value = unzigzag(code);
      require(static_cast<Number>(value) == value);
      return static_cast<Number>(value);
    } else {
      require(static_cast<Number>(code) == code);
      return static_cast<Number>(code);
    }
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  DefinedIds defined_;
  bool ok_ = true;
};

}  // namespace tidemark
