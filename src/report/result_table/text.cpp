// Tables of any analysis as text and as comma-separated values.

#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/common/result_table.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/csv.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string number_text(ResultKind kind, std::uint64_t number) {
  if (kind == ResultKind::bytes) return format_bytes(number);
  return kind == ResultKind::time_ns ? format_duration_ns(number) : format_count(number);
}

std::string facts_text(const std::vector<ResultFact>& facts) {
  std::string text;
  for (const ResultFact& each : facts) text += fact(heading_of(each.key).c_str(), value_text(each.kind, each.value));
  return text;
}

// Totals of the rows that are not listed.
std::vector<std::string> other_cells(const ResultTable& table, const ResultSection& section) {
  std::vector<std::string> cells(table.columns.size());
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (!table.columns[column].summed) continue;
    cells[column] = value_text(table.columns[column].kind, section.other_sum[column]);
  }
  cells.back() = fmt::format("({} more; --top 0 lists all)", format_count(section.other_rows));
  return cells;
}

FittedText fitted_value(ResultKind kind, const ResultValue& value) {
  if (const auto* stack = std::get_if<NamedStack>(&value)) return fitted_with_callers(*stack);
  return [kind, &value](std::size_t width) { return fit(value_text(kind, value), width); };
}

std::string rows_text(const ResultTable& table, const ResultSection& section, const Terminal& terminal) {
  std::vector<std::string> headings;
  for (const ResultColumn& column : table.columns) headings.push_back(heading_of(column.key));
  Columns columns(std::move(headings));
  for (const ResultRow& row : section.rows) {
    std::vector<std::string> cells;
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      cells.push_back(value_text(table.columns[column].kind, row[column]));
    }
    columns.add(std::move(cells), fitted_value(table.columns.back().kind, row.back()));
  }
  if (section.other_rows != 0) columns.add(other_cells(table, section));
  return columns.text(terminal, 2);
}

std::string csv_value(const ResultValue& value) {
  struct Field {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(std::uint64_t number) const { return std::to_string(number); }
    std::string operator()(double share) const { return fmt::format("{:.6f}", share); }
    std::string operator()(const std::string& text) const { return csv_field(text); }
    std::string operator()(const Device& device) const { return to_string(device); }
    std::string operator()(StackId) const { return ","; }
    std::string operator()(const NamedStack& stack) const { return stack_fields(stack); }
  };
  return std::visit(Field(), value);
}

}  // namespace

std::string heading_of(const std::string& key) {
  std::string_view stem = key;
  for (const std::string_view unit : {"_bytes", "_ns"}) {
    if (stem.ends_with(unit)) stem.remove_suffix(unit.size());
  }
  std::string heading(stem);
  std::replace(heading.begin(), heading.end(), '_', ' ');
  return heading;
}

std::string value_text(ResultKind kind, const ResultValue& value) {
  struct Words {
    ResultKind kind;
    std::string operator()(std::monostate) const { return "n/a"; }
    std::string operator()(std::uint64_t number) const { return number_text(kind, number); }
    std::string operator()(double share) const { return share_text(share); }
    std::string operator()(const std::string& text) const { return shown(text); }
    std::string operator()(const Device& device) const { return to_string(device); }
    std::string operator()(StackId) const { return "n/a"; }
    std::string operator()(const NamedStack& stack) const { return stack_text_with_callers(stack); }
  };
  return std::visit(Words{kind}, value);
}

std::string to_text(const ResultTable& table, const Terminal& terminal) {
  std::string text = facts_text(table.facts);
  for (const ResultSection& section : table.sections) {
    if (!text.empty()) text += "\n";
    if (section.device) text += paint(terminal, Tone::heading, to_string(*section.device)) + "\n";
    text += facts_text(section.facts);
    if (section.rows.empty() && section.other_rows == 0) continue;
    if (!section.facts.empty()) text += "\n";
    text += rows_text(table, section, terminal);
  }
  if (table.sections.empty()) text += no_events_text(table.recording);
  return text + quality_hint(table.recording, terminal);
}

std::string to_csv(std::span<const ResultTable> tables) {
  std::string text = "file,rank,device";
  if (tables.empty()) return text + "\n";
  for (const ResultColumn& column : tables.front().columns) {
    text += "," + column.key;
    if (column.kind == ResultKind::stack) text += ",frames";
  }
  text += '\n';
  for (const ResultTable& table : tables) {
    const std::string recording = recording_fields(table.recording);
    for (const ResultSection& section : table.sections) {
      for (const ResultRow& row : section.rows) {
        text += fmt::format("{},{}", recording, section.device ? to_string(*section.device) : "");
        for (const ResultValue& value : row) text += "," + csv_value(value);
        text += '\n';
      }
    }
  }
  return text;
}

}  // namespace tidemark
