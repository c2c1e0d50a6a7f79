#include "report/common/json.h"

#include "analyze/common/result_table.h"
#include "report/common/json_objects.h"

namespace tidemark {
namespace {

Json value_json(const ResultValue& value) {
  struct Value {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(std::uint64_t number) const { return number; }
    Json operator()(double share) const { return share; }
    Json operator()(const std::string& text) const { return text; }
    Json operator()(const Device& device) const { return to_string(device); }
    Json operator()(StackId) const { return nullptr; }
    Json operator()(const NamedStack& stack) const { return stack_json(stack); }
  };
  return std::visit(Value(), value);
}

void add_facts(Json& object, const std::vector<ResultFact>& facts) {
  for (const ResultFact& fact : facts) object[fact.key] = value_json(fact.value);
}

Json section_json(const ResultTable& table, const ResultSection& section) {
  Json object = {{"device", section.device ? Json(to_string(*section.device)) : Json(nullptr)}};
  add_facts(object, section.facts);
  Json rows = Json::array();
  for (const ResultRow& row : section.rows) {
    Json fields = Json::object();
    for (std::size_t column = 0; column < row.size(); ++column) {
      fields[table.columns[column].key] = value_json(row[column]);
    }
    rows.push_back(std::move(fields));
  }
  object["rows"] = std::move(rows);
  object["other_row_count"] = section.other_rows;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].summed) object["other_" + table.columns[column].key] = section.other_sum[column];
  }
  return object;
}

}  // namespace

Json to_object(const ResultTable& table) {
  Json object = recording_json(table.recording);
  add_facts(object, table.facts);
  object["devices"] = Json::array();
  for (const ResultSection& section : table.sections) object["devices"].push_back(section_json(table, section));
  return object;
}

std::string to_json(std::span<const ResultTable> tables) {
  return print_all(tables);
}

}  // namespace tidemark
