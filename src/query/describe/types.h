// Types of the results' descriptions, from which JSON Schema, Python, TypeScript and the tables of the documentation
// are printed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "query/describe/json_object.h"
#include "query/describe/values.h"

namespace tidemark {

/// The type of a value.
struct ValueType {
  enum class Kind : std::uint8_t { boolean, integer, number, text, object, list, keyed, any_of };

  Kind kind = Kind::text;
  bool nullable = false;
  std::vector<std::string> names{};  ///< of a text: the only ones; empty: any
  std::string object{};              ///< of an object: the name of its ObjectType
  std::vector<ValueType> of{};       ///< element type of a list or of an object with keys chosen at run time;
                                     ///< alternatives

  friend bool operator==(const ValueType&, const ValueType&) = default;
};

struct Field {
  std::string key;
  std::string doc{};  ///< a sentence without its full stop; may be empty
  ValueType type{};
  bool may_be_absent = false;

  friend bool operator==(const Field&, const Field&) = default;
};

/// An object with a name.
struct ObjectType {
  std::string name;      ///< of the class in Python, and of the type in TypeScript and JSON Schema
  std::string doc{};     ///< a sentence
  std::string module{};  ///< Python module: the command's name, or the name of a shared module
  bool shared = false;   ///< several commands' results may use it
  /// In the order of the JSON. A string: the name of an ObjectType whose fields are inserted there.
  std::vector<std::variant<Field, std::string>> members{};
  std::optional<ValueType> further{};  ///< of fields with keys that are chosen at run time

  friend bool operator==(const ObjectType&, const ObjectType&) = default;
};

/// The types of all results, each after the types that it uses. Not thread-safe.
class ResultTypes {
 public:
  /// Reads a description. `module`: default for types without one. Returns the name of the result's type.
  template <typename Result>
  std::string read(std::string_view module) {
    module_ = module;
    static const Result kExample{};
    const std::string name = type_of(kExample).object;
    results_.insert(name);
    return name;
  }

  [[nodiscard]] const std::deque<ObjectType>& all() const { return types_; }
  /// Null for an unknown name.
  [[nodiscard]] const ObjectType* find(std::string_view name) const;
  /// All fields of an object in the order of its JSON, including its parts.
  [[nodiscard]] std::vector<Field> fields_of(const ObjectType& type) const;
  /// These types and the types they use, in the order of all().
  [[nodiscard]] std::vector<const ObjectType*> used_by(const std::vector<std::string>& names) const;
  /// Contradictions between descriptions: one name for different types, or a type of one command in another's.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  friend class TypeReader;

  template <typename Value, typename... Context>
  [[nodiscard]] ValueType type_of(const Value& example, const Context&... context);
  template <typename Example>
  [[nodiscard]] ValueType written_type(const WrittenAs<Example>& example);
  template <typename... Alternatives>
  [[nodiscard]] ValueType alternatives(const std::variant<Alternatives...>& example);
  template <typename Value, typename... Context>
  [[nodiscard]] ValueType object_type(const Value& example, const Context&... context);
  [[nodiscard]] static ValueType plain_type(ValueType::Kind kind);
  [[nodiscard]] static ValueType text_type(std::vector<std::string> names);
  [[nodiscard]] static ValueType type_of_items(ValueType::Kind kind, ValueType item);
  [[nodiscard]] ValueType named_object(const std::string& name);
  void add(ObjectType type);

  std::deque<ObjectType> types_;
  std::map<std::type_index, std::string> names_;  // of the types that were read, or are being read
  std::string module_;                            // default for the types being read
  std::set<std::string> results_;                 // names of whole results, which others may contain
  std::vector<std::string> problems_;
};

/// The visitor that reads the type from a description. A default-constructed value is sufficient.
class TypeReader {
 public:
  TypeReader(ResultTypes& types, std::type_index index) : types_(types), index_(index) {}

  void type(std::string_view name, std::string_view doc, std::string_view module = {});
  template <typename Value>
  void field(std::string_view key, const Value& value, std::string_view doc = {}) {
    add_field(key, doc, types_.type_of(value), false);
  }
  template <typename Value>
  void field_if(bool /*present*/, std::string_view key, const Value& value, std::string_view doc = {}) {
    add_field(key, doc, types_.type_of(value), true);
  }
  template <typename Value>
  void further_field(const std::string& /*key*/, const Value& value) {
    type_.further = types_.type_of(value);
  }
  template <typename Part>
  void part(const Part& value) {
    TypeReader reader(types_, typeid(Part));
    describe(reader, value);
    add_part(std::move(reader.type_));
  }
  template <typename Value, typename... Context>
  void part(const InContext<Value, Context...>& value) {
    TypeReader reader(types_, typeid(InContext<Value, Context...>));
    std::apply([&](const Context&... context) { describe(reader, value.value, context...); }, value.context);
    add_part(std::move(reader.type_));
  }

  template <typename Part>
  void part_if(bool /*present*/, const Part& value) {
    part(value);
  }

 private:
  friend class ResultTypes;

  void add_field(std::string_view key, std::string_view doc, ValueType type, bool may_be_absent);
  void add_part(ObjectType part);

  ResultTypes& types_;
  std::type_index index_;
  ObjectType type_;
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename Value, typename... Context>
ValueType ResultTypes::type_of(const Value& example, const Context&... context) {
  using Kind = ValueType::Kind;
  if constexpr (std::is_invocable_v<const Value&>) {
    static const std::remove_cvref_t<std::invoke_result_t<const Value&>> kMade{};
    return type_of(kMade, context...);
  } else if constexpr (std::is_same_v<Value, bool>) {
    return plain_type(Kind::boolean);
  } else if constexpr (std::is_integral_v<Value>) {
    return plain_type(Kind::integer);
  } else if constexpr (std::is_floating_point_v<Value>) {
    return plain_type(Kind::number);
  } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    return plain_type(Kind::text);
  } else if constexpr (is_named<Value>) {
    return text_type(Value::names());
  } else if constexpr (is_written<Value>) {
    ValueType type = written_type(example);
    type.nullable = true;
    return type;
  } else if constexpr (is_nullable<Value>) {
    static const std::remove_cvref_t<decltype(*example)> kValue{};
    ValueType type = type_of(kValue, context...);
    type.nullable = true;
    return type;
  } else if constexpr (is_variant<Value>) {
    return alternatives(example);
  } else if constexpr (is_keyed<Value>) {
    static const typename std::ranges::range_value_t<Value>::second_type kItem{};
    return type_of_items(Kind::keyed, type_of(kItem, context...));
  } else if constexpr (is_list<Value>) {
    using Item = std::ranges::range_value_t<Value>;
    static const std::remove_cv_t<std::remove_pointer_t<Item>> kItem{};  // element type for lists of pointers
    return type_of_items(Kind::list, type_of(kItem, context...));
  } else if constexpr (is_in_context<Value>) {
    return std::apply([&](const auto&... own) { return type_of(example.value, own...); }, example.context);
  } else {
    return object_type(example, context...);
  }
}

template <typename Example>
ValueType ResultTypes::written_type(const WrittenAs<Example>& /*example*/) {
  static const Example kExample{};
  return type_of(kExample);
}

template <typename... Alternatives>
ValueType ResultTypes::alternatives(const std::variant<Alternatives...>& /*example*/) {
  ValueType type{ValueType::Kind::any_of};
  const auto add = [&]<typename Alternative>(std::type_identity<Alternative>) {
    if constexpr (std::is_same_v<Alternative, std::monostate>) {
      type.nullable = true;
    } else {
      ValueType one = type_of(Alternative());
      if (std::find(type.of.begin(), type.of.end(), one) == type.of.end()) type.of.push_back(std::move(one));
    }
  };
  (add(std::type_identity<Alternatives>()), ...);
  return type;
}

template <typename Value, typename... Context>
ValueType ResultTypes::object_type(const Value& example, const Context&... context) {
  const std::type_index index =
      sizeof...(Context) == 0 ? typeid(Value) : typeid(InContext<Value, Context...>);  // the value of in()
  if (const auto known = names_.find(index); known != names_.end()) return named_object(known->second);
  TypeReader reader(*this, index);
  describe(reader, example, context...);
  const std::string name = reader.type_.name;
  add(std::move(reader.type_));
  return named_object(name);
}

}  // namespace tidemark
