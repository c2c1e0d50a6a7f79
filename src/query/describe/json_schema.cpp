#include <fmt/format.h>

#include "query/describe/json_object.h"
#include "query/describe/printers.h"

namespace tidemark {
namespace {

Json reference(const std::string& name) {
  return {{"$ref", "#/$defs/" + name}};
}

Json any_of(Json alternatives) {
  return {{"anyOf", std::move(alternatives)}};
}

Json with_null(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
    return schema;
  }
  if (schema.contains("type")) {
    schema["type"] = Json::array({schema["type"], "null"});
    return schema;
  }
  if (!schema.contains("anyOf")) schema = any_of(Json::array({std::move(schema)}));
  schema["anyOf"].push_back({{"type", "null"}});
  return schema;
}

Json schema_of(const ValueType& type);

Json schema_without_null(const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::boolean:
      return {{"type", "boolean"}};
    case ValueType::Kind::integer:
      return {{"type", "integer"}};
    case ValueType::Kind::number:
      return {{"type", "number"}};
    case ValueType::Kind::text:
      return type.names.empty() ? Json{{"type", "string"}} : Json{{"enum", type.names}};
    case ValueType::Kind::object:
      return reference(type.object);
    case ValueType::Kind::list:
      return {{"type", "array"}, {"items", schema_of(type.of.front())}};
    case ValueType::Kind::keyed:
      return {{"type", "object"}, {"additionalProperties", schema_of(type.of.front())}};
    case ValueType::Kind::any_of:
      break;
  }
  Json alternatives = Json::array();
  for (const ValueType& alternative : type.of) alternatives.push_back(schema_of(alternative));
  return any_of(std::move(alternatives));
}

Json schema_of(const ValueType& type) {
  Json schema = schema_without_null(type);
  return type.nullable ? with_null(std::move(schema)) : schema;
}

Json definition(const ResultTypes& types, const ObjectType& type) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Field& field : types.fields_of(type)) {
    Json schema = schema_of(field.type);
    if (!field.doc.empty()) schema["description"] = field.doc;
    properties[field.key] = std::move(schema);
    if (!field.may_be_absent) required.push_back(field.key);
  }
  Json object = {{"description", type.doc}, {"type", "object"}, {"properties", std::move(properties)}};
  object["required"] = std::move(required);
  if (type.further) object["additionalProperties"] = schema_of(*type.further);
  return object;
}

}  // namespace

std::string json_schema(const DescribedResults& results, std::span<const DescribedCommand> commands) {
  Json documents = Json::array();
  std::vector<std::string> roots;
  for (const DescribedCommand& command : commands) {
    roots.push_back(command.type);
    documents.push_back(reference(command.type));
    if (!command.type_of_several.empty()) {
      roots.push_back(command.type_of_several);
      documents.push_back(reference(command.type_of_several));
    }
    if (!command.several || !command.type_of_several.empty()) continue;
    documents.push_back({{"type", "object"},
                         {"properties", {{"recordings", {{"type", "array"}, {"items", reference(command.type)}}}}},
                         {"required", {"recordings"}}});
  }
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
  const DescribedCommand& first = commands.front();
  schema["title"] = commands.size() > 1
                        ? "Results of tidemark"
                        : fmt::format("tidemark {} --format json", first.title.empty() ? first.name : first.title);
  schema.update(documents.size() == 1 ? documents.front() : any_of(documents));
  Json definitions = Json::object();
  for (const ObjectType* type : results.types.used_by(roots)) {
    definitions[type->name] = definition(results.types, *type);
  }
  schema["$defs"] = std::move(definitions);
  return schema.dump(1) + "\n";
}

}  // namespace tidemark
