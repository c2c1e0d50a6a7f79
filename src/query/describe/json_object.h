// Results as JSON, from their descriptions. describe.h explains how to write one.
//
// Bytes and times are integers, unknown values null; invalid UTF-8 is replaced by U+FFFD.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "query/describe/values.h"

namespace tidemark {

using Json = nlohmann::ordered_json;  // keeps keys in the order of the description

/// JSON that was written before, of an `Example`; or null.
template <typename Example>
struct WrittenAs {
  Json json = nullptr;
};
template <typename Value>
inline constexpr bool is_written = false;
template <typename Example>
inline constexpr bool is_written<WrittenAs<Example>> = true;

/// The visitor that writes a result's values. It uses only keys and values of a description. Code that does not depend
/// on a value's type is in the source file, because each instantiation of a template costs compile time.
class JsonObject {
 public:
  explicit JsonObject(Json& object) : object_(object) {}

  void type(std::string_view /*name*/, std::string_view /*doc*/, std::string_view /*module*/ = {}) {}

  template <typename Value>
  void field(std::string_view key, const Value& value, std::string_view /*doc*/ = {}) {
    write(add(object_, key), value);
  }
  template <typename Value>
  void field_if(bool present, std::string_view key, const Value& value, std::string_view doc = {}) {
    if (present) field(key, value, doc);
  }
  template <typename Value>
  void further_field(const std::string& key, const Value& value) {
    field(key, value);
  }
  template <typename Part>
  void part(const Part& value) {
    describe(*this, value);
  }
  template <typename Value, typename... Context>
  void part(const InContext<Value, Context...>& value) {
    std::apply([&](const Context&... context) { describe(*this, value.value, context...); }, value.context);
  }

  template <typename Part>
  void part_if(bool present, const Part& value) {
    if (present) part(value);
  }

  /// Fills a null value.
  template <typename Value, typename... Context>
  static void write(Json& into, const Value& value, const Context&... context);

 private:
  static Json& add(Json& object, std::string_view key);  ///< `key` must not exist yet; inserts null
  static Json& append(Json& array);                      ///< null
  static void set(Json& into, bool value);
  static void set(Json& into, std::int64_t value);
  static void set(Json& into, std::uint64_t value);
  static void set(Json& into, double value);
  static void set(Json& into, std::string_view value);
  static void set(Json& into, const Json& value);
  static void set_object(Json& into);
  static void set_array(Json& into);

  Json& object_;
};

/// The JSON of a described result.
template <typename Result>
[[nodiscard]] Json to_object(const Result& result) {
  Json json;
  JsonObject::write(json, result);
  return json;
}

/// How it is printed: one object for one result, {"recordings": [...]} for several. Ends with a newline.
[[nodiscard]] std::string print_json(std::vector<Json> objects);
template <typename Result>
[[nodiscard]] std::string to_json(const Result& result) {
  return print_json({to_object(result)});
}
template <typename Result>
[[nodiscard]] std::string to_json(std::span<const Result> results) {
  std::vector<Json> objects;
  objects.reserve(results.size());
  for (const Result& result : results) objects.push_back(to_object(result));
  return print_json(std::move(objects));
}
template <typename Result>
[[nodiscard]] std::string to_json(const std::vector<Result>& results) {
  return to_json(std::span<const Result>(results));
}

// ---------------------------------------------------------------------------------------------------------------------

template <typename Value, typename... Context>
void JsonObject::write(Json& into, const Value& value, const Context&... context) {
  if constexpr (std::is_invocable_v<const Value&>) {
    write(into, value(), context...);
  } else if constexpr (is_written<Value>) {
    set(into, value.json);
  } else if constexpr (std::is_same_v<Value, bool>) {
    set(into, value);
  } else if constexpr (std::is_floating_point_v<Value>) {
    set(into, double{value});
  } else if constexpr (std::is_integral_v<Value>) {
    set(into, static_cast<std::conditional_t<std::is_signed_v<Value>, std::int64_t, std::uint64_t>>(value));
  } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    set(into, std::string_view(value));
  } else if constexpr (is_named<Value>) {
    set(into, value.name());
  } else if constexpr (is_nullable<Value>) {
    if (value) write(into, *value, context...);
  } else if constexpr (std::is_same_v<Value, std::monostate>) {
    return;
  } else if constexpr (is_variant<Value>) {
    std::visit([&](const auto& alternative) { write(into, alternative); }, value);
  } else if constexpr (is_keyed<Value>) {
    set_object(into);
    for (const auto& [key, item] : value) write(add(into, key), item, context...);
  } else if constexpr (is_list<Value>) {
    set_array(into);
    for (const auto& item : value) write(append(into), item, context...);
  } else if constexpr (is_in_context<Value>) {
    std::apply([&](const auto&... own) { write(into, value.value, own...); }, value.context);
  } else {
    set_object(into);
    JsonObject visitor(into);
    describe(visitor, value, context...);
  }
}

}  // namespace tidemark
