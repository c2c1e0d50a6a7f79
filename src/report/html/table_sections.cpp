// A section for each analysis with a table as its result.
#include <fmt/format.h>

#include <iterator>

#include "base/units.h"
#include "report/common/text.h"
#include "report/html/markup.h"
#include "report/html/sections.h"

namespace tidemark::html {
namespace {

std::string cell(const ResultColumn& column, const ResultValue& value) {
  if (const auto* stack = std::get_if<NamedStack>(&value)) return stack_cell(*stack);
  return escaped(value_text(column.kind, value));
}

void add_facts(std::string& out, const std::vector<ResultFact>& facts) {
  if (facts.empty()) return;
  out += "<dl class=\"facts\">\n";
  for (const ResultFact& fact : facts) {
    fmt::format_to(std::back_inserter(out), "<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(heading_of(fact.key)),
                   escaped(value_text(fact.kind, fact.value)));
  }
  out += "</dl>\n";
}

void add_rows(std::string& out, const PageTable& page, const ResultSection& section) {
  const std::vector<ResultColumn>& columns = page.table.columns;
  std::vector<std::string> cells;
  cells.reserve(columns.size());
  for (const ResultColumn& column : columns) cells.push_back(escaped(heading_of(column.key)));
  open_table(out, cells);
  for (const ResultRow& row : section.rows) {
    for (std::size_t column = 0; column < row.size(); ++column) cells[column] = cell(columns[column], row[column]);
    add_row(out, cells);
  }
  out += kTableEnd;
  if (section.other_rows != 0) {
    add_remark(out, fmt::format("And {} more: <code>tidemark {} --top 0</code>.", format_count(section.other_rows),
                                escaped(page.analysis->name)));
  }
}

}  // namespace

void add_tables(std::string& out, const PageContents& contents, const std::string& id) {
  for (const PageTable& page : contents.tables) {
    if (page.table.sections.empty()) continue;
    std::string title = page.analysis->name;
    if (title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
    open_section(out, id + page.analysis->name, escaped(title), escaped(page.analysis->about));
    add_facts(out, page.table.facts);
    for (const ResultSection& section : page.table.sections) {
      if (section.device) add_device_heading(out, *section.device);
      add_facts(out, section.facts);
      if (!section.rows.empty() || section.other_rows != 0) add_rows(out, page, section);
    }
    out += kSectionEnd;
  }
}

}  // namespace tidemark::html
