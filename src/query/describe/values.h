// Refines the description of a value if its C++ type is not sufficient: words of a fixed set, optional values, and
// values with descriptions that need more arguments.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/enum_names.h"

namespace tidemark {

/// The name of an enum's value, out of its table of names. `Never`: values that are never written.
template <const auto& Table, auto... Never>
struct Named {
  using Enum = std::remove_cvref_t<decltype(Table[0].value)>;
  Enum value = Table[0].value;

  [[nodiscard]] constexpr std::string_view name() const { return name_in(Table, value); }
  [[nodiscard]] static std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const EnumName<Enum>& entry : Table) {
      if (((entry.value != Never) && ...)) names.emplace_back(entry.name);
    }
    return names;
  }
};

/// `named<kLeakVerdictNames>(leaks.verdict)`.
template <const auto& Table, auto... Never>
[[nodiscard]] constexpr Named<Table, Never...> named(typename Named<Table, Never...>::Enum value) {
  return {value};
}

/// A literal as a template's argument.
template <std::size_t Size>
struct Literal {
  // NOLINTNEXTLINE(google-explicit-constructor): so that it is written as a literal
  consteval Literal(const char (&text)[Size]) { std::copy_n(text, Size, letters.begin()); }
  [[nodiscard]] constexpr std::string_view view() const { return {letters.data(), Size - 1}; }

  std::array<char, Size> letters{};
};

/// One of a few words that no enum has: `one_of<"python", "native">(text)`.
template <Literal... Words>
struct OneOf {
  std::string_view word;

  [[nodiscard]] constexpr std::string_view name() const { return word; }
  [[nodiscard]] static std::vector<std::string> names() { return {std::string(Words.view())...}; }
};
template <Literal... Words>
[[nodiscard]] constexpr OneOf<Words...> one_of(std::string_view word) {
  return {word};
}

/// The value if known, null otherwise. A function is only called if known.
template <typename Value>
[[nodiscard]] auto when(bool known, Value&& value) {
  if constexpr (std::is_invocable_v<Value>) {
    using Made = std::remove_cvref_t<std::invoke_result_t<Value>>;
    return known ? std::optional<Made>(std::forward<Value>(value)()) : std::optional<Made>();
  } else {
    using Given = std::remove_cvref_t<Value>;
    return known ? std::optional<Given>(std::forward<Value>(value)) : std::optional<Given>();
  }
}

/// Null for text that is empty when unknown. A view of it.
[[nodiscard]] inline std::optional<std::string_view> known_text(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

/// A value, or each value of a list, that is described by `describe(visitor, value, context...)`: further arguments of
/// the description, or a tag that selects one of two descriptions of a type. Holds references, which must outlive it.
template <typename Value, typename... Context>
struct InContext {
  const Value& value;
  std::tuple<const Context&...> context;
};
template <typename Value, typename... Context>
[[nodiscard]] InContext<Value, Context...> in(const Value& value, const Context&... context) {
  return {value, {context...}};
}

/// The target of a pointer; a default-constructed value if it is null.
template <typename Value>
[[nodiscard]] const Value& value_or_none(const Value* pointer) {
  static const Value kNone{};
  return pointer == nullptr ? kNone : *pointer;
}

/// An object with keys chosen at run time, in this order. A std::map is one too.
template <typename Value>
using Keyed = std::vector<std::pair<std::string, Value>>;

// Type traits used by visitors.

template <typename Value>
inline constexpr bool is_named = requires {
  Value::names();
};

template <typename Value>
inline constexpr bool is_nullable = std::is_pointer_v<Value>;
template <typename Value>
inline constexpr bool is_nullable<std::optional<Value>> = true;

template <typename Value>
inline constexpr bool is_variant = false;
template <typename... Alternatives>
inline constexpr bool is_variant<std::variant<Alternatives...>> = true;

template <typename Value>
inline constexpr bool is_in_context = false;
template <typename Value, typename... Context>
inline constexpr bool is_in_context<InContext<Value, Context...>> = true;

template <typename Value>
inline constexpr bool is_list = std::ranges::input_range<Value>;

template <typename Value>
inline constexpr bool is_keyed = false;
template <typename Value>
requires is_list<Value>
inline constexpr bool is_keyed<Value> = requires(const std::ranges::range_value_t<Value>& entry) {
  { entry.first } -> std::convertible_to<std::string_view>;
  entry.second;
};

}  // namespace tidemark
