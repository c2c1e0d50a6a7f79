// Records: what definitions and samples frames hold. A payload is a sequence of
//
//   varint kind | varint body length | body
//
// and a body a sequence of fields. A reader passes over kinds it does not know, and over what is left at a body's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "trace/format.h"
#include "trace/varint.h"

namespace tidemark {

/// Appends fields to a record's body, which it empties first.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::uint8_t>& out) : out_(out) { out_.clear(); }

  FieldWriter& number(std::uint64_t value) {
    std::uint8_t bytes[kMaxVarintBytes];
    out_.insert(out_.end(), bytes, put_varint(bytes, value));
    return *this;
  }
  FieldWriter& integer(std::int64_t value) { return number(zigzag(value)); }
  FieldWriter& text(std::string_view text) {
    text = text.substr(0, format::kMaxStringBytes);
    number(text.size());
    out_.insert(out_.end(), text.begin(), text.end());
    return *this;
  }
  /// 0 for none, else the number + 1. The largest number counts as none.
  template <typename Number>
  FieldWriter& optional(const std::optional<Number>& value) {
    return number(value ? std::uint64_t{*value} + 1 : 0);
  }

 private:
  std::vector<std::uint8_t>& out_;
};

/// How an id is stored: 0 for none (or one that was never defined), else id + 1.
inline std::uint32_t id_code(std::uint32_t id, std::size_t defined) {
  return id < defined ? id + 1 : 0;
}

/// Adds a record to the last of several payloads, or to a new one when that is full. One record adds at most some 6 MiB
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

/// Takes fields off a record's body. After a field that is not there, ok() is false and all fields are 0 or empty.
class FieldReader {
 public:
  /// At least kMaxVarintBytes of readable memory follow `body`.
  explicit FieldReader(std::span<const std::uint8_t> body) : at_(body.data()), end_(body.data() + body.size()) {}

  std::uint64_t number() {
    if (at_ >= end_) return fail();
    const std::uint64_t value = get_varint(at_);
    return at_ <= end_ ? value : fail();
  }
  std::int64_t integer() { return unzigzag(number()); }
  std::int32_t integer32() { return static_cast<std::int32_t>(integer()); }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
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
  std::string text() {
    const auto found = bytes();
    return {found.begin(), found.end()};
  }
  /// 0 for none, else the number + 1.
  template <typename Number>
  void optional(std::optional<Number>& out) {
    const std::uint64_t code = number();
    if (ok_ && code != 0) out = static_cast<Number>(code - 1);
  }
  /// 0 for none, else id + 1, of a table that has `defined` entries.
  std::uint32_t id(std::size_t defined) {
    const std::uint64_t code = number();
    if (code > defined) fail();
    return code == 0 || !ok_ ? StringId::kNone : static_cast<std::uint32_t>(code - 1);
  }
  /// How far back from the entry `own`; 0 for none.
  std::uint32_t id_before(std::size_t own) {
    const std::uint64_t distance = number();
    if (distance > own) fail();
    return distance == 0 || !ok_ ? StringId::kNone : static_cast<std::uint32_t>(own - distance);
  }

  /// Fails where what was read makes no sense.
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

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool ok_ = true;
};

}  // namespace tidemark
