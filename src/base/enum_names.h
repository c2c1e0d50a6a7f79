// The names of an enum's values, in a single table for both printing and parsing.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tidemark {

template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

/// The name of `value`, or `otherwise` for a value that the table does not list (read from a file, for example).
template <typename Enum, std::size_t Count>
[[nodiscard]] constexpr std::string_view name_in(const EnumName<Enum> (&names)[Count], Enum value,
                                                 std::string_view otherwise = "unknown") {
  for (const EnumName<Enum>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return otherwise;
}

/// The value with that name.
template <typename Enum, std::size_t Count>
[[nodiscard]] constexpr std::optional<Enum> value_in(const EnumName<Enum> (&names)[Count], std::string_view name) {
  for (const EnumName<Enum>& entry : names) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

}  // namespace tidemark
