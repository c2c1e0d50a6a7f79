// Thrift's compact protocol, as far as Parquet's headers need it:
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// Appends structs, with fields in order of their numbers, to a text.
class ThriftWriter {
 public:
  explicit ThriftWriter(std::string& bytes) : bytes_(bytes) {}

  void number32(int field, std::int32_t value) { number(field, kInt32, value); }
  void number64(int field, std::int64_t value) { number(field, kInt64, value); }
  void text(int field, std::string_view value) {
    begin_field(field, kBinary);
    append_text(value);
  }
  /// `write()` writes the fields.
  template <typename Write>
  void structure(int field, const Write& write) {
    begin_field(field, kStruct);
    append_struct(write);
  }
  /// `write(item)` writes the fields of each.
  template <typename Items, typename Write>
  void structures(int field, const Items& items, const Write& write) {
    begin_list(field, kStruct, items.size());
    for (const auto& item : items) append_struct([&] { write(item); });
  }
  void numbers32(int field, const std::vector<std::int32_t>& values) {
    begin_list(field, kInt32, values.size());
    for (const std::int32_t value : values) append_varint(zigzag(value));
  }
  void texts(int field, const std::vector<std::string_view>& values) {
    begin_list(field, kBinary, values.size());
    for (const std::string_view value : values) append_text(value);
  }
  /// Ends the outermost struct.
  void end() { bytes_ += '\0'; }

 private:
  enum Type : std::uint8_t { kInt32 = 5, kInt64 = 6, kBinary = 8, kList = 9, kStruct = 12 };

  static std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  void append_byte(std::uint64_t byte) { bytes_ += static_cast<char>(byte & 0xFF); }
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) append_byte(value | 0x80);
    append_byte(value);
  }
  void append_text(std::string_view text) {
    append_varint(text.size());
    bytes_ += text;
  }
  // Field numbers of one struct are at most 15 apart in Parquet's.
  void begin_field(int field, Type type) {
    append_byte(static_cast<std::uint64_t>(field - last_) << 4 | type);
    last_ = field;
  }
  void number(int field, Type type, std::int64_t value) {
    begin_field(field, type);
    append_varint(zigzag(value));
  }
  void begin_list(int field, Type type, std::size_t size) {
    begin_field(field, kList);
    append_byte((size < 15 ? size : 15) << 4 | type);
    if (size >= 15) append_varint(size);
  }
  template <typename Write>
  void append_struct(const Write& write) {
    const int outer = last_;
    last_ = 0;
    write();
    end();
    last_ = outer;
  }

  std::string& bytes_;
  int last_ = 0;  // field of the struct that is being written
};

}  // namespace tidemark
