#include <fmt/format.h>

#include "query/describe/printers.h"

namespace tidemark {
namespace {

std::string typescript_type(const ValueType& type) {
  const auto alternatives = [&](const auto& list) { return fmt::format("{}", fmt::join(list, " | ")); };
  std::string text = [&]() -> std::string {
    switch (type.kind) {
      case ValueType::Kind::boolean:
        return "boolean";
      case ValueType::Kind::integer:
      case ValueType::Kind::number:
        return "number";
      case ValueType::Kind::text: {
        if (type.names.empty()) return "string";
        std::vector<std::string> names;
        for (const std::string& name : type.names) names.push_back(fmt::format("\"{}\"", name));
        return alternatives(names);
      }
      case ValueType::Kind::object:
        return type.object;
      case ValueType::Kind::list: {
        const std::string item = typescript_type(type.of.front());
        return item.find('|') == std::string::npos ? item + "[]" : fmt::format("({})[]", item);
      }
      case ValueType::Kind::keyed:
        return fmt::format("Record<string, {}>", typescript_type(type.of.front()));
      case ValueType::Kind::any_of:
        break;
    }
    std::vector<std::string> each;
    for (const ValueType& alternative : type.of) each.push_back(typescript_type(alternative));
    return alternatives(each);
  }();
  return type.nullable ? text + " | null" : text;
}

std::string interface_text(const ObjectType& type) {
  std::vector<std::string> parts;
  std::string fields;
  for (const auto& member : type.members) {
    const auto* field = std::get_if<Field>(&member);
    if (field == nullptr) {
      parts.push_back(std::get<std::string>(member));
      continue;
    }
    if (!field->doc.empty()) fields += fmt::format("  /** {} */\n", field->doc);
    fields += fmt::format("  {}{}: {};\n", field->key, field->may_be_absent ? "?" : "", typescript_type(field->type));
  }
  if (type.further) fields += "  [key: string]: unknown;\n";
  return fmt::format("/** {} */\nexport interface {}{} {{\n{}}}\n", type.doc, type.name,
                     parts.empty() ? "" : fmt::format(" extends {}", fmt::join(parts, ", ")), fields);
}

}  // namespace

std::string typescript(const DescribedResults& results, std::span<const DescribedCommand> commands) {
  std::vector<std::string> roots;
  std::string documents;
  for (const DescribedCommand& command : commands) {
    roots.push_back(command.type);
    std::string document = command.type;
    if (!command.type_of_several.empty()) {
      roots.push_back(command.type_of_several);
      document += " | " + command.type_of_several;
    } else if (command.several) {
      document += fmt::format(" | {{ recordings: {}[] }}", command.type);
    }
    documents += fmt::format("  \"{}\": {};\n", command.name, document);
  }
  std::string text =
      "// What `tidemark COMMAND --format json` prints. Made by scripts/refresh_results.py from src/query/results: "
      "edit that.\n";
  for (const ObjectType* type : results.types.used_by(roots)) text += "\n" + interface_text(*type);
  return text +
         fmt::format("\n/** The documents of commands, by their names. */\nexport interface Documents {{\n{}}}\n",
                     documents);
}

}  // namespace tidemark
