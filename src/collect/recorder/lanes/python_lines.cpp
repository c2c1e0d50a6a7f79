#include "collect/recorder/lanes/python_lines.h"

#include <optional>

namespace tidemark {
namespace {

constexpr std::uint32_t kCodeUnit = 2;  // bytes of a bytecode instruction, in all versions read here

/// Cursor over a table; reading past the end returns std::nullopt.
class TableReader {
 public:
  explicit TableReader(std::span<const std::byte> table) : rest_(table) {}

  std::optional<std::uint8_t> next() {
    if (rest_.empty()) return std::nullopt;
    const auto value = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }

  /// Skips to the next byte with its highest bit set, which starts an entry of a location table.
  void skip_to_entry() {
    while (!rest_.empty() && (rest_.front() & std::byte{0x80}) == std::byte{0}) rest_ = rest_.subspan(1);
  }

  /// Six bits per byte, lowest first, 0x40 for "more follows"; the sign is the lowest bit of the number.
  std::optional<std::int64_t> signed_varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 36; shift += 6) {
      const std::optional<std::uint8_t> byte = next();
      if (!byte) return std::nullopt;
      number |= static_cast<std::uint64_t>(*byte & 0x3FU) << shift;
      if ((*byte & 0x40U) == 0) {
        const auto magnitude = static_cast<std::int64_t>(number >> 1);
        return (number & 1U) != 0 ? -magnitude : magnitude;
      }
    }
    return std::nullopt;
  }

 private:
  std::span<const std::byte> rest_;
};

std::int64_t as_signed(std::uint8_t byte) {
  return static_cast<std::int8_t>(byte);
}

std::uint32_t valid_line(std::int64_t line) {
  return line > 0 && line <= INT32_MAX ? static_cast<std::uint32_t>(line) : 0;
}

// 3.9: pairs (bytes to advance, lines to add); a pair takes effect at the address it advances to.
std::uint32_t line_in_lnotab(TableReader table, std::int64_t line, std::uint32_t wanted) {
  std::uint64_t address = 0;
  while (true) {
    const std::optional<std::uint8_t> bytes = table.next();
    const std::optional<std::uint8_t> lines = table.next();
    if (!lines) return valid_line(line);
    address += *bytes;
    if (address > wanted) return valid_line(line);
    line += as_signed(*lines);
  }
}

// 3.10: pairs (length of a range, lines to add before it); -128 lines: the range has no line.
std::uint32_t line_in_ranges(TableReader table, std::int64_t line, std::uint32_t wanted) {
  std::uint64_t end = 0;
  while (true) {
    const std::optional<std::uint8_t> bytes = table.next();
    const std::optional<std::uint8_t> lines = table.next();
    if (!lines) return 0;
    const bool no_line = as_signed(*lines) == -128;
    if (!no_line) line += as_signed(*lines);
    end += *bytes;
    if (wanted < end) return no_line ? 0 : valid_line(line);
  }
}

// 3.11 on: entries that start with 1cccclll: kind c, length l + 1 code units; the following bytes depend on the kind.
// Columns are skipped.
std::uint32_t line_in_locations(TableReader table, std::int64_t line, std::uint32_t wanted) {
  std::uint64_t end = 0;
  while (true) {
    const std::optional<std::uint8_t> head = table.next();
    if (!head) return 0;
    const unsigned kind = *head >> 3 & 0x0FU;
    if (kind == 13 || kind == 14) {  // without columns; long form
      const std::optional<std::int64_t> delta = table.signed_varint();
      if (!delta) return 0;
      line += *delta;
    } else if (kind >= 10 && kind <= 12) {  // one-line forms, 0 to 2 lines further
      line += kind - 10;
    }
    table.skip_to_entry();
    const std::uint64_t units = (*head & 7U) + 1;
    end += units * kCodeUnit;
    if (wanted < end) return kind == 15 ? 0 : valid_line(line);
  }
}

}  // namespace

std::uint32_t python_line(std::uint16_t version, std::span<const std::byte> line_table, std::uint32_t first_line,
                          std::uint32_t bytecode_offset) {
  // A frame before its first instruction has a negative offset; CPython gives it the first line.
  if (static_cast<std::int32_t>(bytecode_offset) < 0) return valid_line(first_line);
  const TableReader table(line_table);
  if (version == 0x0309) return line_in_lnotab(table, first_line, bytecode_offset);
  if (version == 0x030A) return line_in_ranges(table, first_line, bytecode_offset);
  if (version >= 0x030B && version <= 0x030E) return line_in_locations(table, first_line, bytecode_offset);
  return 0;
}

std::uint32_t python_bytecode_offset(std::uint16_t version, std::uint32_t instruction, std::uint32_t code_offset) {
  if (version == 0x0309) return instruction;              // f_lasti, in bytes
  if (version == 0x030A) return instruction * kCodeUnit;  // f_lasti, in code units
  return instruction - code_offset;                       // distance from the code object, in bytes
}

}  // namespace tidemark
