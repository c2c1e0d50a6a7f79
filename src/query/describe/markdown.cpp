#include <fmt/format.h>

#include <map>

#include "query/describe/printers.h"

namespace tidemark {
namespace {

// Links are relative to docs/; scripts/refresh_results.py makes them relative to the page that has the table.
std::string link_to(const ObjectType& type) {
  std::string anchor;
  for (const char letter : type.name) anchor += static_cast<char>(std::tolower(letter));
  return fmt::format("[{}](commands/index.md#{})", type.name, anchor);
}

std::string escaped(const std::string& text) {
  std::string cell;
  for (const char letter : text) cell += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return cell;
}

// One table. A nested type is described at its first use.
class KeyTable {
 public:
  explicit KeyTable(const ResultTypes& types) : types_(types) {}

  /// A type that is described elsewhere: "the object above".
  void set_place(const std::string& type, const std::string& words) { elsewhere_[type] = words; }

  void add(const ObjectType& type, const std::string& before) {
    for (const auto& member : type.members) {
      if (const auto* field = std::get_if<Field>(&member)) {
        add(*field, before);
      } else if (const ObjectType* part = types_.find(std::get<std::string>(member))) {
        if (part->shared) {
          rows_ += fmt::format("| {} | keys of {} | |\n", before.empty() ? "…" : fmt::format("`{}…`", before),
                               link_to(*part));
        } else {
          places_.emplace(part->name, before.substr(0, before.size() - 1));
          add(*part, before);
        }
      }
    }
    if (type.further) rows_ += fmt::format("| `{}…` | {} | |\n", before, type_text(*type.further, {}));
  }

  [[nodiscard]] std::string text() const { return "| key | value | meaning |\n|---|---|---|\n" + rows_; }

 private:
  void add(const Field& field, const std::string& before) {
    const std::string path = before + field.key;
    const ObjectType* inside = object_in(field.type);
    const bool here =
        inside != nullptr && !inside->shared && !places_.contains(inside->name) && !elsewhere_.contains(inside->name);
    const std::string items = path + brackets(field.type);
    if (here) places_[inside->name] = items;
    rows_ += fmt::format("| `{}` | {}{} | {} |\n", path, type_text(field.type, here ? inside->name : ""),
                         field.may_be_absent ? "; may be absent" : "", escaped(field.doc));
    if (here) add(*inside, items + ".");
  }

  // Continuation of a path to an object inside.
  static std::string brackets(const ValueType& type) {
    if (type.kind == ValueType::Kind::list) return "[]" + brackets(type.of.front());
    if (type.kind == ValueType::Kind::keyed) return ".KEY" + brackets(type.of.front());
    return {};
  }

  [[nodiscard]] const ObjectType* object_in(const ValueType& type) const {
    if (type.kind == ValueType::Kind::object) return types_.find(type.object);
    if (type.kind == ValueType::Kind::list || type.kind == ValueType::Kind::keyed) return object_in(type.of.front());
    return nullptr;
  }

  // `here`: the object that contains the keys.
  [[nodiscard]] std::string type_text(const ValueType& type, const std::string& here) const {
    const std::string text = [&]() -> std::string {
      switch (type.kind) {
        case ValueType::Kind::boolean:
          return "boolean";
        case ValueType::Kind::integer:
          return "integer";
        case ValueType::Kind::number:
          return "number";
        case ValueType::Kind::text: {
          if (type.names.empty()) return "string";
          std::vector<std::string> names;
          for (const std::string& name : type.names) names.push_back(fmt::format("`\"{}\"`", name));
          return fmt::format("{}", fmt::join(names, ", "));
        }
        case ValueType::Kind::object: {
          const ObjectType* object = types_.find(type.object);
          if (object != nullptr && object->shared) return link_to(*object);
          const auto place = places_.find(type.object);
          if (const auto words = elsewhere_.find(type.object); words != elsewhere_.end()) return words->second;
          if (type.object == here || place == places_.end()) return "object";
          return fmt::format("object as `{}`", place->second);
        }
        case ValueType::Kind::list:
          return "list of " + plural(type_text(type.of.front(), here));
        case ValueType::Kind::keyed:
          return "object of " + plural(type_text(type.of.front(), here));
        case ValueType::Kind::any_of:
          break;
      }
      std::vector<std::string> each;
      for (const ValueType& alternative : type.of) each.push_back(type_text(alternative, here));
      return fmt::format("{}", fmt::join(each, " or "));
    }();
    return type.nullable ? text + " or null" : text;
  }

  static std::string plural(const std::string& text) {
    for (const std::string_view word : {"boolean", "integer", "number", "string", "object"}) {
      if (text == word) return text + "s";
      if (text.starts_with(word)) return std::string(word) + "s" + text.substr(word.size());
    }
    return text;
  }

  const ResultTypes& types_;
  std::map<std::string, std::string> places_;  // of types, by name
  std::map<std::string, std::string> elsewhere_;
  std::string rows_;
};

}  // namespace

std::string markdown(const DescribedResults& results, const std::string& module) {
  for (const DescribedCommand& command : results.commands) {
    if (DescribedResults::module_of(command.name) != module) continue;
    KeyTable table(results.types);
    for (const DescribedCommand& other : results.commands) {
      if (other.name == command.name) continue;
      table.set_place(other.type, fmt::format("object as of [{}](commands/{}.md)", other.name, other.name));
    }
    table.add(*results.types.find(command.type), "");
    if (command.type_of_several.empty()) return table.text();
    KeyTable of_several(results.types);
    of_several.set_place(command.type, "object as above");
    of_several.add(*results.types.find(command.type_of_several), "");
    return fmt::format("{}\nOf several recordings:\n\n{}", table.text(), of_several.text());
  }
  std::string text;
  for (const ObjectType& type : results.types.all()) {
    if (type.module != module) continue;
    KeyTable table(results.types);
    table.add(type, "");
    text += fmt::format("{}#### {}\n\n{}\n\n{}", text.empty() ? "" : "\n", type.name, type.doc, table.text());
  }
  return text;
}

}  // namespace tidemark
