// One column of one row group of a Parquet file: its pages, compressed, and what the footer says of them.
// https://parquet.apache.org/docs/file-format/
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "export/column_table.h"

namespace tidemark::parquet {

// Values of the format's enumerations, as far as they are used.
inline constexpr std::int32_t kInt64 = 2;
inline constexpr std::int32_t kByteArray = 6;
inline constexpr std::int32_t kPlain = 0;
inline constexpr std::int32_t kRle = 3;
inline constexpr std::int32_t kRleDictionary = 8;
inline constexpr std::int32_t kZstd = 6;

struct ColumnChunk {
  std::string bytes;                 ///< of its pages, with their headers
  std::size_t dictionary_bytes = 0;  ///< of the dictionary's page, which comes first; 0: there is none
  std::size_t plain_bytes = 0;       ///< as `bytes`, not compressed
};

/// Rows `begin` to `end` of the column. Numbers are plain, texts in a dictionary of those that the rows have. Fails
/// where its pages would be larger than the format allows (2 GiB).
Result<ColumnChunk> make_chunk(const Column& column, std::size_t begin, std::size_t end);

}  // namespace tidemark::parquet
