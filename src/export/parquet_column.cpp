#include "export/parquet_column.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "export/thrift_writer.h"

namespace tidemark::parquet {
namespace {

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

// What the rows have of the column's words: as a page, and with their new numbers.
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
      thrift.number32(4, kRle);  // of repetition levels, which there are none of
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

}  // namespace

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

}  // namespace tidemark::parquet
