// Parquet, a format of data frames and databases: https://parquet.apache.org/docs/file-format/
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "base/result.h"
#include "export/column_table.h"
#include "export/format.h"
#include "export/thrift_writer.h"

namespace tidemark {
namespace {

// https://parquet.apache.org/docs/file-format/
// Values of the format's enumerations, as far as they are used.
constexpr std::int32_t kInt64 = 2;
constexpr std::int32_t kByteArray = 6;
constexpr std::int32_t kPlain = 0;
constexpr std::int32_t kRle = 3;
constexpr std::int32_t kRleDictionary = 8;
constexpr std::int32_t kZstd = 6;

// One column of one row group: its compressed pages, and its entry in the footer.
struct ColumnChunk {
  std::string bytes;                 ///< of its pages, with their headers
  std::size_t dictionary_bytes = 0;  ///< of the dictionary's page, which comes first; 0: there is none
  std::size_t plain_bytes = 0;       ///< as `bytes`, not compressed
};

constexpr std::int32_t kDataPage = 0;
constexpr std::int32_t kDictionaryPage = 2;
constexpr int kCompressionLevel = 3;  // zstd's usual one

void append_little_endian(std::uint64_t value, int bytes, std::string& out) {
  for (int byte = 0; byte < bytes; ++byte) out += static_cast<char>(value >> 8 * byte & 0xFF);
}

// Numbers of `width` bits as one bit-packed run of the format's RLE hybrid.
class BitPacker {
 public:
  BitPacker(unsigned width, std::size_t count, std::string& out) : width_(width), out_(out) {
    const std::size_t groups = (count + 7) / 8;
    missing_ = groups * 8 - count;
    for (std::uint64_t header = groups << 1 | 1;; header >>= 7) {
      out_ += static_cast<char>(header >= 0x80 ? (header & 0x7F) | 0x80 : header);
      if (header < 0x80) break;
    }
  }
  void add(std::uint64_t value) {
    pending_ |= value << bits_;
    bits_ += width_;
    for (; bits_ >= 8; bits_ -= 8, pending_ >>= 8) out_ += static_cast<char>(pending_ & 0xFF);
  }
  // Groups are of eight.
  void finish() {
    for (; missing_ != 0; --missing_) add(0);
  }

 private:
  unsigned width_;
  std::string& out_;
  std::size_t missing_ = 0;
  std::uint64_t pending_ = 0;  // at most 7 bits and a value of 32
  unsigned bits_ = 0;
};

using Values = std::vector<std::optional<std::uint64_t>>;

// One bit a row: whether it has a value. With its length in front, as pages of version 1 have it.
std::string definition_levels(const Values& values) {
  std::string levels;
  BitPacker bits(1, values.size(), levels);
  for (const auto& value : values) bits.add(value ? 1 : 0);
  bits.finish();
  std::string sized;
  append_little_endian(levels.size(), 4, sized);
  return sized + levels;
}

// Words of a column that occur in the rows: as a page, and with their new numbers.
struct Dictionary {
  std::string page;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers;
};

Dictionary make_dictionary(const Column& column, const Values& values) {
  Dictionary dictionary;
  const std::vector<std::string>& words = column.words();
  for (const auto& value : values) {
    if (!value || !dictionary.numbers.try_emplace(*value, dictionary.numbers.size()).second) continue;
    append_little_endian(words[*value].size(), 4, dictionary.page);
    dictionary.page += words[*value];
  }
  return dictionary;
}

class ChunkWriter {
 public:
  Result<void> add_page(std::int32_t type, std::size_t values, std::int32_t encoding, const std::string& plain) {
    if (plain.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      return Error{"a page of the Parquet file would be larger than 2 GiB"};
    }
    std::string packed(ZSTD_compressBound(plain.size()), '\0');
    const std::size_t size = ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), kCompressionLevel);
    if (ZSTD_isError(size) != 0) return Error{fmt::format("zstd: {}", ZSTD_getErrorName(size))};
    std::string header;
    ThriftWriter thrift(header);
    thrift.number32(1, type);
    thrift.number32(2, static_cast<std::int32_t>(plain.size()));
    thrift.number32(3, static_cast<std::int32_t>(size));
    thrift.structure(type == kDataPage ? 5 : 7, [&] {
      thrift.number32(1, static_cast<std::int32_t>(values));
      thrift.number32(2, encoding);
      if (type != kDataPage) return;
      thrift.number32(3, kRle);  // of definition levels
      thrift.number32(4, kRle);  // of repetition levels, which do not exist
    });
    thrift.end();
    chunk_.bytes += header;
    chunk_.bytes.append(packed, 0, size);
    chunk_.plain_bytes += header.size() + plain.size();
    if (type == kDictionaryPage) chunk_.dictionary_bytes = chunk_.bytes.size();
    return {};
  }
  [[nodiscard]] ColumnChunk take() { return std::move(chunk_); }

 private:
  ColumnChunk chunk_;
};

// Rows `begin` to `end` of the column. Numbers are plain, texts are in a dictionary of the rows' texts. Fails if its
// pages would be larger than the format allows (2 GiB).
Result<ColumnChunk> make_chunk(const Column& column, std::size_t begin, std::size_t end) {
  Values values(end - begin);
  for (std::size_t row = begin; row < end; ++row) values[row - begin] = column.value(row);
  ChunkWriter writer;
  std::string page = column.nullable ? definition_levels(values) : std::string();
  if (column.kind != Column::Kind::text) {
    for (const auto& value : values) {
      if (value) append_little_endian(*value, 8, page);
    }
    if (auto added = writer.add_page(kDataPage, values.size(), kPlain, page); !added) return added.error();
    return writer.take();
  }
  const Dictionary dictionary = make_dictionary(column, values);
  const std::size_t words = dictionary.numbers.size();
  if (auto added = writer.add_page(kDictionaryPage, words, kPlain, dictionary.page); !added) return added.error();
  const auto width = std::max(1U, static_cast<unsigned>(std::bit_width(words)));  // some readers do not expect 0 bits
  page += static_cast<char>(width);
  const auto known = std::count_if(values.begin(), values.end(), [](const auto& value) { return value.has_value(); });
  BitPacker numbers(width, static_cast<std::size_t>(known), page);
  for (const auto& value : values) {
    if (value) numbers.add(dictionary.numbers.at(*value));
  }
  numbers.finish();
  if (auto added = writer.add_page(kDataPage, values.size(), kRleDictionary, page); !added) return added.error();
  return writer.take();
}

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
    thrift.number32(1, is_text(*column) ? kByteArray : kInt64);
    thrift.number32(3, column->nullable ? 1 : 0);
    thrift.text(4, column->name);
    thrift.number32(6, is_text(*column) ? kUtf8 : column->kind == Column::Kind::address ? kUint64 : kSigned64);
  });
}

void write_column(const WrittenColumn& written, std::size_t rows, ThriftWriter& thrift) {
  thrift.number64(2, signed_of(written.offset));
  thrift.structure(3, [&] {
    const bool text = is_text(*written.column);
    thrift.number32(1, text ? kByteArray : kInt64);
    thrift.numbers32(2, text ? std::vector{kPlain, kRle, kRleDictionary} : std::vector{kPlain, kRle});
    thrift.texts(3, {written.column->name});
    thrift.number32(4, kZstd);
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

// Every block, with its owner: snapshots contain no owners, so they are derived from stacks.
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
      const auto chunk = make_chunk(column, begin, end);
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
