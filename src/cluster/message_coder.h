// Structs as protobuf messages, for writing and reading by one description of their members:
//
//   template <typename Coder>
//   void members(Coder& coder, JobEvent& of) {
//     coder(1, of.kind), coder(2, of.node);        numbers are never used for another member
//   }
//   inline bool is_known(JobEventKind value) { return is_in(kJobEventKindNames, value); }
//
// both in the namespace of the struct. Members are numbers, enums, texts, structs, and optionals and vectors of these.
// Unknown fields are skipped.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/enum_names.h"

namespace tidemark {

using MessageTag = protozero::pbf_tag_type;

template <std::size_t kCount, typename Enum>
[[nodiscard]] bool is_in(const EnumName<Enum> (&names)[kCount], Enum value) {
  return !name_in(names, value, "").empty();
}
template <typename T>
inline constexpr bool is_vector_member = false;
template <typename T>
inline constexpr bool is_vector_member<std::vector<T>> = true;
template <typename T>
inline constexpr bool is_optional_member = false;
template <typename T>
inline constexpr bool is_optional_member<std::optional<T>> = true;

/// Writes a struct into a string.
class MessageWriter {
 public:
  explicit MessageWriter(protozero::pbf_writer writer) : writer_(std::move(writer)) {}

  template <typename T>
  void operator()(MessageTag tag, T& value) {
    if constexpr (is_vector_member<T>) {
      for (auto& item : value) (*this)(tag, item);
    } else if constexpr (is_optional_member<T>) {
      if (value) (*this)(tag, *value);
    } else if constexpr (std::is_same_v<T, bool>) {
      writer_.add_bool(tag, value);
    } else if constexpr (std::is_enum_v<T>) {
      writer_.add_uint64(tag, static_cast<std::uint64_t>(value));
    } else if constexpr (std::signed_integral<T>) {
      writer_.add_sint64(tag, value);
    } else if constexpr (std::unsigned_integral<T>) {
      writer_.add_uint64(tag, value);
    } else if constexpr (std::is_same_v<T, double>) {
      writer_.add_double(tag, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      writer_.add_string(tag, value);
    } else {
      MessageWriter nested(protozero::pbf_writer(writer_, tag));
      members(nested, value);
    }
  }

 private:
  protozero::pbf_writer writer_;
};

/// Reads one field into the member with its number. Throws std::exception for what cannot be. Hostile input: `budget`
/// bounds the bytes of the structs in vectors.
class MessageReader {
 public:
  MessageReader(protozero::pbf_reader& field, std::size_t& budget) : field_(field), budget_(budget) {}

  template <typename T>
  static void read_message(protozero::pbf_reader message, std::size_t& budget, T& into) {
    while (message.next()) {
      MessageReader field(message, budget);
      members(field, into);
      if (!field.is_read_) message.skip();
    }
  }

  template <typename T>
  void operator()(MessageTag tag, T& member) {
    if (is_read_ || field_.tag() != tag) return;
    is_read_ = true;
    read(member);
  }

 private:
  void expect(protozero::pbf_wire_type type) const {
    if (field_.wire_type() != type) throw std::runtime_error("a field has another type than expected");
  }

  template <typename T>
  void read(T& into) {
    if constexpr (is_vector_member<T>) {
      using Item = typename T::value_type;
      if (budget_ < sizeof(Item)) throw std::runtime_error("it has too many entries");
      budget_ -= sizeof(Item);
      read(into.emplace_back());
    } else if constexpr (is_optional_member<T>) {
      read(into.emplace());
    } else if constexpr (std::is_same_v<T, bool>) {
      expect(protozero::pbf_wire_type::varint);
      into = field_.get_bool();
    } else if constexpr (std::is_enum_v<T>) {
      expect(protozero::pbf_wire_type::varint);
      const std::uint64_t value = field_.get_uint64();
      into = static_cast<T>(value);
      if (value > 0xFF || !is_known(into)) throw std::runtime_error("a value is unknown: update this program");
    } else if constexpr (std::signed_integral<T>) {
      expect(protozero::pbf_wire_type::varint);
      into = static_cast<T>(field_.get_sint64());
    } else if constexpr (std::unsigned_integral<T>) {
      expect(protozero::pbf_wire_type::varint);
      const std::uint64_t value = field_.get_uint64();
      if (value > std::numeric_limits<T>::max()) throw std::runtime_error("a number is too large");
      into = static_cast<T>(value);
    } else if constexpr (std::is_same_v<T, double>) {
      expect(protozero::pbf_wire_type::fixed64);
      into = field_.get_double();
    } else if constexpr (std::is_same_v<T, std::string>) {
      expect(protozero::pbf_wire_type::length_delimited);
      into = field_.get_string();
    } else {
      expect(protozero::pbf_wire_type::length_delimited);
      read_message(field_.get_message(), budget_, into);
    }
  }

  protozero::pbf_reader& field_;
  std::size_t& budget_;
  bool is_read_ = false;
};

/// The bytes of a struct.
template <typename Message>
[[nodiscard]] std::string encode_members(const Message& message) {
  std::string bytes;
  Message copy = message;  // members() are the same for reading
  MessageWriter coder{protozero::pbf_writer(bytes)};
  members(coder, copy);
  return bytes;
}

/// The struct of these bytes. Throws as MessageReader does; `budget` as there.
template <typename Message>
[[nodiscard]] Message decode_members(std::string_view bytes, std::size_t budget) {
  Message message;
  MessageReader::read_message(protozero::pbf_reader(bytes.data(), bytes.size()), budget, message);
  return message;
}

}  // namespace tidemark
