// Results as JSON, from their descriptions. describe.h says how to write one.
//
// Bytes and times are integers, unknown values null; text that is not UTF-8 has U+FFFD in place of the bytes that are
// not.
#pragma once

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

using Json = nlohmann::ordered_json;  // keys in the order in which they are described

/// JSON that was written before, of an `Example`; or null.
template <typename Example>
struct WrittenAs {
  Json json = nullptr;
};
template <typename Value>
inline constexpr bool is_written = false;
template <typename Example>
inline constexpr bool is_written<WrittenAs<Example>> = true;

/// The visitor that writes a result's values. Of a description it needs keys and values only.
class JsonObject {
 public:
  explicit JsonObject(Json& object) : object_(object) {}

  void type(std::string_view /*name*/, std::string_view /*doc*/, std::string_view /*module*/ = {}) {}

  template <typename Value>
  void field(std::string_view key, const Value& value, std::string_view /*doc*/ = {}) {
    // Without a search for the key: no description has one twice.
    static_cast<Members&>(object_.get_ref<Json::object_t&>()).emplace_back(std::string(key), json_of(value));
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

  template <typename Value, typename... Context>
  [[nodiscard]] static Json json_of(const Value& value, const Context&... context);

 private:
  using Members = std::vector<std::pair<const std::string, Json>>;

  Json& object_;
};

/// The JSON of a described result.
template <typename Result>
[[nodiscard]] Json to_object(const Result& result) {
  return JsonObject::json_of(result);
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
Json JsonObject::json_of(const Value& value, const Context&... context) {
  if constexpr (std::is_invocable_v<const Value&>) {
    return json_of(value(), context...);
  } else if constexpr (is_written<Value>) {
    return value.json;
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return value;
  } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    return std::string_view(value);
  } else if constexpr (is_named<Value>) {
    return value.name();
  } else if constexpr (is_nullable<Value>) {
    return value ? json_of(*value, context...) : Json(nullptr);
  } else if constexpr (std::is_same_v<Value, std::monostate>) {
    return nullptr;
  } else if constexpr (is_variant<Value>) {
    return std::visit([](const auto& alternative) { return json_of(alternative); }, value);
  } else if constexpr (is_keyed<Value>) {
    Json object = Json::object();
    for (const auto& [key, item] : value) object[key] = json_of(item, context...);
    return object;
  } else if constexpr (is_list<Value>) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(json_of(item, context...));
    return array;
  } else if constexpr (is_in_context<Value>) {
    return std::apply([&](const auto&... own) { return json_of(value.value, own...); }, value.context);
  } else {
    Json object = Json::object();
    JsonObject visitor(object);
    describe(visitor, value, context...);
    return object;
  }
}

}  // namespace tidemark
