#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "query/describe/printers.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxColumns = 128;  // of a line, as in pyproject.toml
constexpr std::string_view kResultsPackage = "tidemark.reading.results.";

// A value in an object with keys chosen at run time has the type of its JSON: a list stays a list.
std::string python_type(const ValueType& type, bool plain = false) {
  const auto inner = [&](const ValueType& of) { return python_type(of, plain); };
  const std::string text = [&]() -> std::string {
    switch (type.kind) {
      case ValueType::Kind::boolean:
        return "bool";
      case ValueType::Kind::integer:
        return "int";
      case ValueType::Kind::number:
        return "float";
      case ValueType::Kind::text:
        return "str";
      case ValueType::Kind::object:
        return type.object;
      case ValueType::Kind::list:
        return plain ? fmt::format("list[{}]", inner(type.of.front()))
                     : fmt::format("tuple[{}, ...]", inner(type.of.front()));
      case ValueType::Kind::keyed:
        return fmt::format("dict[str, {}]", python_type(type.of.front(), true));
      case ValueType::Kind::any_of:
        break;
    }
    std::vector<std::string> alternatives;
    for (const ValueType& alternative : type.of) alternatives.push_back(python_type(alternative, true));
    return fmt::format("Union[{}]", fmt::join(alternatives, ", "));
  }();
  return type.nullable ? fmt::format("Optional[{}]", text) : text;
}

bool uses(const ValueType& type, std::string_view object) {
  return type.object == object ||
         std::any_of(type.of.begin(), type.of.end(), [&](const ValueType& of) { return uses(of, object); });
}

// Replaces a word of JSON by Python's.
void replace_word(std::string& doc, std::string_view word, std::string_view by) {
  const auto is_letter = [&](std::size_t at) {
    return at < doc.size() && (std::isalnum(static_cast<unsigned char>(doc[at])) != 0 || doc[at] == '_');
  };
  for (std::size_t at = 0; (at = doc.find(word, at)) != std::string::npos; at += by.size()) {
    if (!is_letter(at - 1) && !is_letter(at + word.size())) doc.replace(at, word.size(), by);
  }
}

// Null and absent values of JSON are None in Python; code has two backticks.
std::string python_doc(std::string doc) {
  replace_word(doc, "null", "None");
  replace_word(doc, "absent", "None");
  std::string text;
  for (const char letter : doc) text += letter == '`' ? std::string("``") : std::string(1, letter);
  return text;
}

std::string names_text(const ValueType& type) {
  const ValueType& text = type.kind == ValueType::Kind::list ? type.of.front() : type;
  std::vector<std::string> names;
  for (const std::string& name : text.names) names.push_back(fmt::format("\"{}\"", name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string wrap(const std::string& text, std::string_view before) {
  std::string lines;
  std::string line;
  const auto end_line = [&] { lines.append(before).append(std::exchange(line, {})).append("\n"); };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && before.size() + line.size() + 1 + word.size() > kMaxColumns) end_line();
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  end_line();
  return lines;
}

std::string field_lines(const ObjectType& owner, const Field& field) {
  ValueType type = field.type;
  type.nullable |= field.may_be_absent;
  std::string annotation = python_type(type);
  if (uses(type, owner.name)) annotation = fmt::format("\"{}\"", annotation);
  std::string doc = python_doc(field.doc);
  const std::string names = names_text(field.type);
  if (!names.empty()) doc = doc.empty() ? names : fmt::format("{}: {}", names, doc);
  const std::string line = fmt::format("    {}: {}", field.key, annotation);
  if (doc.empty()) return line + "\n";
  std::string with_doc = fmt::format("{}  #: {}", line, doc);
  if (with_doc.size() <= kMaxColumns) return with_doc + "\n";
  return wrap(doc, "    #: ") + line + "\n";
}

std::string class_text(const ObjectType& type, bool is_result) {
  std::vector<std::string> bases;
  if (is_result) bases.emplace_back("Result");
  std::string fields;
  for (const auto& member : type.members) {
    if (const auto* field = std::get_if<Field>(&member)) {
      fields += field_lines(type, *field);
    } else {
      bases.push_back(std::get<std::string>(member));
    }
  }
  return fmt::format("@dataclass(frozen=True{})\nclass {}{}:\n    \"\"\"{}\"\"\"\n{}{}",
                     is_result ? ", repr=False" : "", type.name,
                     bases.empty() ? "" : fmt::format("({})", fmt::join(bases, ", ")), python_doc(type.doc),
                     fields.empty() ? "" : "\n", fields);
}

void collect_names(const ValueType& type, std::set<std::string>& objects, std::set<std::string>& typing) {
  if (type.nullable) typing.insert("Optional");
  if (type.kind == ValueType::Kind::any_of) typing.insert("Union");
  if (!type.object.empty()) objects.insert(type.object);
  for (const ValueType& of : type.of) collect_names(of, objects, typing);
}

std::string import_line(const std::string& module, const std::set<std::string>& names) {
  std::string line = fmt::format("from {} import {}\n", module, fmt::join(names, ", "));
  if (line.size() <= kMaxColumns + 1) return line;
  return fmt::format("from {} import (\n    {},\n)\n", module, fmt::join(names, ",\n    "));
}

}  // namespace

std::string DescribedResults::module_of(const std::string& command) {
  std::string module = command;
  std::replace(module.begin(), module.end(), '-', '_');
  return module;
}

bool DescribedResults::in_python(const std::string& module) const {
  std::vector<std::string> roots;
  for (const DescribedCommand& command : commands) {
    if (!command.in_python) continue;
    roots.push_back(command.type);
    if (!command.type_of_several.empty()) roots.push_back(command.type_of_several);
  }
  const std::vector<const ObjectType*> used = types.used_by(roots);
  return std::any_of(used.begin(), used.end(), [&](const ObjectType* type) { return type->module == module; });
}

std::string python_module(const DescribedResults& results, const std::string& module) {
  std::set<std::string> roots;
  std::string doc;
  for (const DescribedCommand& command : results.commands) {
    roots.insert(command.type);
    if (!command.type_of_several.empty()) roots.insert(command.type_of_several);
    if (DescribedResults::module_of(command.name) == module)
      doc = fmt::format("What ``tidemark {}`` says.", command.title.empty() ? command.name : command.title);
  }
  for (const SharedModule& shared : results.shared) {
    if (shared.name == module) doc = shared.doc;
  }
  std::set<std::string> objects;
  std::set<std::string> typing;
  std::string classes;
  bool has_result = false;
  for (const ObjectType& type : results.types.all()) {
    if (type.module != module) continue;
    const bool is_result = roots.contains(type.name);
    has_result |= is_result;
    classes += "\n\n" + class_text(type, is_result);
    for (const auto& member : type.members) {
      if (const auto* field = std::get_if<Field>(&member)) {
        ValueType value = field->type;
        value.nullable |= field->may_be_absent;
        collect_names(value, objects, typing);
      } else {
        objects.insert(std::get<std::string>(member));
      }
    }
  }
  std::map<std::string, std::set<std::string>> imports;
  if (has_result) imports["tidemark.reading.rendering"].insert("Result");
  for (const std::string& name : objects) {
    const ObjectType* type = results.types.find(name);
    if (type != nullptr && type->module != module) imports[std::string(kResultsPackage) + type->module].insert(name);
  }
  std::string text = fmt::format(
      "\"\"\"{}\"\"\"\n\n# Made by scripts/refresh_results.py from src/query/results: edit that.\n"
      "# Without postponed annotations: from_json() reads them while the program runs, on Python 3.9 too.\n"
      "from dataclasses import dataclass\n",
      doc);
  if (!typing.empty()) text += import_line("typing", typing);
  if (!imports.empty()) text += "\n";
  for (const auto& [from, names] : imports) text += import_line(from, names);
  return text + classes;
}

}  // namespace tidemark
