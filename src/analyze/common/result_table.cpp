#include "analyze/common/result_table.h"

#include <utility>

namespace tidemark {

void keep_rows(ResultSection& section, const std::vector<ResultColumn>& columns, std::size_t kept) {
  section.other_sum.resize(columns.size(), 0);
  if (section.rows.size() <= kept) return;
  for (std::size_t row = kept; row < section.rows.size(); ++row) {
    ++section.other_rows;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const auto* number = std::get_if<std::uint64_t>(&section.rows[row][column]);
      if (columns[column].summed && number != nullptr) section.other_sum[column] += *number;
    }
  }
  section.rows.resize(kept);
}

ResultTable finish_table(ResultTable table, const Overview& overview, Symbols& symbols, std::size_t top) {
  for (ResultSection& section : table.sections) {
    keep_rows(section, table.columns, top == 0 ? section.rows.size() : top);
    std::vector<NamedStack*> stacks;
    for (ResultRow& row : section.rows) {
      for (ResultValue& value : row) {
        const auto* stack = std::get_if<StackId>(&value);
        if (stack == nullptr) continue;
        value = name_stack(symbols, *stack);
        stacks.push_back(&std::get<NamedStack>(value));
      }
    }
    tell_apart(stacks);
  }
  table.recording = describe_recording(overview, symbols);
  return table;
}

}  // namespace tidemark
