#include "report/common/csv.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "export/column_table.h"
#include "export/format.h"

namespace tidemark {
namespace {

// Texts are made into fields once.
class FieldWriter {
 public:
  explicit FieldWriter(const Column& column) : column_(column) {
    if (column.kind != Column::Kind::text) return;
    for (const std::string& word : column.words()) fields_.push_back(csv_field(word));
  }

  void append(std::size_t row, std::string& text) const {
    const auto value = column_.value(row);
    if (!value) return;
    const auto out = std::back_inserter(text);
    if (column_.kind == Column::Kind::text) {
      text += fields_[*value];
    } else if (column_.name == "address") {
      fmt::format_to(out, "0x{:x}", *value);
    } else if (column_.kind == Column::Kind::address) {
      fmt::format_to(out, "{}", *value);  // a handle
    } else {
      fmt::format_to(out, "{}", static_cast<std::int64_t>(*value));
    }
  }

 private:
  const Column& column_;
  std::vector<std::string> fields_;
};

/// Every block, one per line (RFC 4180, with
/// line ends). Unknown values are empty fields.
Result<void> write_csv(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                       const Progress& progress) {
  const auto made = exported_table(store, symbols, options);
  if (!made) return made.error();
  const ColumnTable& table = *made;
  std::string text;
  std::vector<FieldWriter> fields;
  for (const Column& column : table.columns) {
    if (column.name == "stack" && !options.whole_stacks) continue;
    fields.emplace_back(column);
    text += text.empty() ? column.name : "," + column.name;
  }
  text += '\n';
  for (std::size_t row = 0; row < table.row_count; ++row) {
    for (std::size_t column = 0; column < fields.size(); ++column) {
      if (column != 0) text += ',';
      fields[column].append(row, text);
    }
    text += '\n';
    if (text.size() < kOutputPiece) continue;
    if (auto written = output(text); !written) return written;
    text.clear();
    if (progress) progress(row, table.row_count);
  }
  return output(text);
}

}  // namespace

ExportFormat csv_format() {
  return {"csv", "every block, one per line", ".blocks.csv", false, false, write_csv};
}

}  // namespace tidemark
