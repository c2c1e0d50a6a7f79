// Parquet, which data frames and databases read: https://parquet.apache.org/docs/file-format/
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "export/column_table.h"
#include "export/format.h"
#include "export/parquet_column.h"
#include "export/thrift_writer.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::size_t kRowsInGroup = std::size_t{1} << 20;

struct WrittenColumn {
  const Column* column = nullptr;
  std::size_t offset = 0;
  std::size_t size = 0;
  std::size_t plain_size = 0;
  std::size_t dictionary_size = 0;
};

struct RowGroup {
  std::size_t rows = 0;
  std::vector<WrittenColumn> columns;
};

std::int64_t signed_of(std::size_t value) {
  return static_cast<std::int64_t>(value);
}

bool is_text(const Column& column) {
  return column.kind == Column::Kind::text;
}

void write_schema(const ColumnTable& table, ThriftWriter& thrift) {
  constexpr std::int32_t kUtf8 = 0;  // of the format's ConvertedType
  constexpr std::int32_t kUint64 = 14;
  constexpr std::int32_t kSigned64 = 18;
  std::vector<const Column*> elements = {nullptr};  // the root
  for (const Column& column : table.columns) elements.push_back(&column);
  thrift.structures(2, elements, [&](const Column* column) {
    if (column == nullptr) {
      thrift.text(4, "blocks");
      thrift.number32(5, static_cast<std::int32_t>(table.columns.size()));
      return;
    }
    thrift.number32(1, is_text(*column) ? parquet::kByteArray : parquet::kInt64);
    thrift.number32(3, column->nullable ? 1 : 0);
    thrift.text(4, column->name);
    thrift.number32(6, is_text(*column) ? kUtf8 : column->kind == Column::Kind::address ? kUint64 : kSigned64);
  });
}

void write_column(const WrittenColumn& written, std::size_t rows, ThriftWriter& thrift) {
  thrift.number64(2, signed_of(written.offset));
  thrift.structure(3, [&] {
    const bool text = is_text(*written.column);
    thrift.number32(1, text ? parquet::kByteArray : parquet::kInt64);
    thrift.numbers32(2, text ? std::vector{parquet::kPlain, parquet::kRle, parquet::kRleDictionary}
                             : std::vector{parquet::kPlain, parquet::kRle});
    thrift.texts(3, {written.column->name});
    thrift.number32(4, parquet::kZstd);
    thrift.number64(5, signed_of(rows));
    thrift.number64(6, signed_of(written.plain_size));
    thrift.number64(7, signed_of(written.size));
    thrift.number64(9, signed_of(written.offset + written.dictionary_size));
    if (text) thrift.number64(11, signed_of(written.offset));
  });
}

std::string make_footer(const ColumnTable& table, const std::vector<RowGroup>& groups) {
  std::string footer;
  ThriftWriter thrift(footer);
  thrift.number32(1, 2);  // the format's version
  write_schema(table, thrift);
  thrift.number64(3, signed_of(table.row_count));
  thrift.structures(4, groups, [&](const RowGroup& group) {
    std::size_t plain_size = 0;
    for (const WrittenColumn& column : group.columns) plain_size += column.plain_size;
    thrift.structures(1, group.columns, [&](const WrittenColumn& column) { write_column(column, group.rows, thrift); });
    thrift.number64(2, signed_of(plain_size));
    thrift.number64(3, signed_of(group.rows));
  });
  thrift.text(6, "tidemark " TIDEMARK_VERSION);
  thrift.end();
  const std::size_t size = footer.size();
  for (int byte = 0; byte < 4; ++byte) footer += static_cast<char>(size >> 8 * byte & 0xFF);
  return footer.append(kMagic);
}

// Every block, with its owner: that of snapshots, which say nothing of it themselves, is what can be told from stacks.
Result<void> write_parquet(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                           const Progress& progress) {
  ExportOptions with_owners = options;
  Attribution told;
  if (options.attribution == nullptr) {
    told = attribute_blocks(store);
    with_owners.attribution = &told;
  }
  const auto table = exported_table(store, symbols, with_owners);
  if (!table) return table.error();
  if (auto written = output(kMagic); !written) return written;
  std::size_t offset = kMagic.size();
  std::vector<RowGroup> groups;
  for (std::size_t begin = 0; begin < table->row_count; begin += kRowsInGroup) {
    const std::size_t end = std::min(begin + kRowsInGroup, table->row_count);
    RowGroup& group = groups.emplace_back(RowGroup{end - begin, {}});
    for (const Column& column : table->columns) {
      const auto chunk = parquet::make_chunk(column, begin, end);
      if (!chunk) return chunk.error();
      if (auto written = output(chunk->bytes); !written) return written;
      group.columns.push_back({&column, offset, chunk->bytes.size(), chunk->plain_bytes, chunk->dictionary_bytes});
      offset += chunk->bytes.size();
    }
    if (progress) progress(end, table->row_count);
  }
  return output(make_footer(*table, groups));
}

}  // namespace

ExportFormat parquet_format() {
  return {"parquet", "every block with its owner, for data frames", ".blocks.parquet", true, false, write_parquet};
}

}  // namespace tidemark
