#include "query/describe/types.h"

#include <fmt/format.h>

#include <set>

namespace tidemark {
namespace {

// The names of the objects that a value is made of.
void collect_objects(const ValueType& type, std::vector<std::string>& names) {
  if (type.kind == ValueType::Kind::object) names.push_back(type.object);
  for (const ValueType& of : type.of) collect_objects(of, names);
}

std::vector<std::string> used_names(const ObjectType& type) {
  std::vector<std::string> names;
  for (const auto& member : type.members) {
    if (const auto* part = std::get_if<std::string>(&member)) {
      names.push_back(*part);
    } else {
      collect_objects(std::get<Field>(member).type, names);
    }
  }
  if (type.further) collect_objects(*type.further, names);
  return names;
}

}  // namespace

const ObjectType* ResultTypes::find(std::string_view name) const {
  const auto found =
      std::find_if(types_.begin(), types_.end(), [&](const ObjectType& type) { return type.name == name; });
  return found == types_.end() ? nullptr : &*found;
}

std::vector<Field> ResultTypes::fields_of(const ObjectType& type) const {
  std::vector<Field> fields;
  for (const auto& member : type.members) {
    if (const auto* field = std::get_if<Field>(&member)) {
      fields.push_back(*field);
    } else if (const ObjectType* part = find(std::get<std::string>(member))) {
      for (Field& inherited : fields_of(*part)) fields.push_back(std::move(inherited));
    }
  }
  return fields;
}

std::vector<const ObjectType*> ResultTypes::used_by(const std::vector<std::string>& names) const {
  std::set<std::string> used;
  std::vector<std::string> open = names;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const ObjectType* type = find(name);
    if (type == nullptr || !used.insert(name).second) continue;
    for (std::string& other : used_names(*type)) open.push_back(std::move(other));
  }
  std::vector<const ObjectType*> list;
  for (const ObjectType& type : types_) {
    if (used.contains(type.name)) list.push_back(&type);
  }
  return list;
}

ValueType ResultTypes::plain_type(ValueType::Kind kind) {
  return {kind};
}

ValueType ResultTypes::text_type(std::vector<std::string> names) {
  return {ValueType::Kind::text, false, std::move(names)};
}

ValueType ResultTypes::type_of_items(ValueType::Kind kind, ValueType item) {
  return {kind, false, {}, {}, {std::move(item)}};
}

ValueType ResultTypes::named_object(const std::string& name) {
  const ObjectType* type = find(name);  // null: it is being read
  if (type != nullptr && !type->shared && type->module != module_ && !results_.contains(name)) {
    problems_.push_back(
        fmt::format("{} is of {} and {}: its description has to name a module", name, type->module, module_));
  }
  return {ValueType::Kind::object, false, {}, name};
}

void ResultTypes::add(ObjectType type) {
  std::set<std::string> keys;
  if (type.name.empty()) problems_.push_back(fmt::format("{}: an object without a name", module_));
  const ObjectType* known = find(type.name);
  if (known == nullptr) {
    known = &types_.emplace_back(std::move(type));
  } else if (*known != type) {
    problems_.push_back(fmt::format("{} has two descriptions", type.name));
  }
  for (const Field& field : fields_of(*known)) {
    if (!keys.insert(field.key).second)
      problems_.push_back(fmt::format("{} has two fields {}", known->name, field.key));
  }
}

void TypeReader::type(std::string_view name, std::string_view doc, std::string_view module) {
  type_.name = name;
  type_.doc = doc;
  type_.shared = !module.empty();
  type_.module = type_.shared ? std::string(module) : types_.module_;
  types_.names_.emplace(index_, type_.name);
}

void TypeReader::add_field(std::string_view key, std::string_view doc, ValueType type, bool may_be_absent) {
  std::variant<Field, std::string> field(Field{std::string(key), std::string(doc), std::move(type), may_be_absent});
  const bool has_other_place = may_be_absent && std::ranges::find(type_.members, field) != type_.members.end();
  if (!has_other_place) type_.members.push_back(std::move(field));
}

void TypeReader::add_part(ObjectType part) {
  if (part.name.empty()) {
    for (auto& member : part.members) type_.members.push_back(std::move(member));
    if (part.further) type_.further = std::move(part.further);
    return;
  }
  type_.members.emplace_back(part.name);
  types_.add(std::move(part));
}

}  // namespace tidemark
