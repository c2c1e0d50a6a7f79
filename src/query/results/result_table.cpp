#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"

namespace tidemark {
namespace {

using TableValue = std::variant<std::monostate, std::uint64_t, double, std::string, NamedStack>;

struct AsTableValue {
  TableValue operator()(std::monostate) const { return {}; }
  TableValue operator()(std::uint64_t number) const { return number; }
  TableValue operator()(double share) const { return share; }
  TableValue operator()(const std::string& text) const { return text; }
  TableValue operator()(const Device& device) const { return to_string(device); }
  TableValue operator()(StackId) const { return {}; }
  TableValue operator()(const NamedStack& stack) const { return known(stack) == nullptr ? TableValue() : stack; }
};

TableValue as_value(const ResultValue& value) {
  return std::visit(AsTableValue(), value);
}

template <typename Visitor>
void describe_facts(Visitor& v, const std::vector<ResultFact>& facts) {
  for (const ResultFact& fact : facts) v.further_field(fact.key, as_value(fact.value));
}

Keyed<TableValue> cells_of(const ResultTable& table, const ResultRow& row) {
  Keyed<TableValue> cells;
  for (std::size_t column = 0; column < row.size(); ++column) {
    cells.emplace_back(table.columns[column].key, as_value(row[column]));
  }
  return cells;
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const ResultSection& section, const ResultTable& table) {
  v.type("ResultSection", "What is said of one device, or of all: facts, and rows of the table's columns.",
         kCommonTypes);
  v.field("device", when(section.device.has_value(), [&] { return to_string(*section.device); }));
  describe_facts(v, section.facts);
  std::vector<Keyed<TableValue>> rows;
  for (const ResultRow& row : section.rows) rows.push_back(cells_of(table, row));
  v.field("rows", rows, "by column, the most important first");
  v.field("other_row_count", section.other_rows);
  for (std::size_t column = 0; column < section.other_sum.size(); ++column) {
    if (table.columns[column].summed) v.further_field("other_" + table.columns[column].key, section.other_sum[column]);
  }
}

template <typename Visitor>
void describe(Visitor& v, const ResultTable& table) {
  v.type("ResultTable", "A table: facts and a section for each device.", kCommonTypes);
  v.part(table.recording);
  describe_facts(v, table.facts);
  v.field("devices", in(table.sections, table));
}
TIDEMARK_DESCRIBED(ResultTable);

}  // namespace tidemark
