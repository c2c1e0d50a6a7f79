// Reading from bytes that somebody else laid out, never past their end.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

namespace tidemark::phantom {

/// The `size` bytes at `offset`; empty when not all of them are there.
[[nodiscard]] inline std::string_view bytes_at(std::string_view bytes, std::size_t offset, std::size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.substr(offset, size);
}

/// The record at `offset`, which need not be aligned; none when not all of it is there.
template <typename Record>
[[nodiscard]] std::optional<Record> record_at(std::string_view bytes, std::size_t offset) {
  const std::string_view found = bytes_at(bytes, offset, sizeof(Record));
  if (found.empty()) return std::nullopt;
  Record record;
  std::memcpy(&record, found.data(), sizeof record);
  return record;
}

}  // namespace tidemark::phantom
