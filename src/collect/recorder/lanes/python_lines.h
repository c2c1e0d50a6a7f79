// Line numbers from CPython's line tables, as copied from the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark {

/// Line of the instruction at byte offset `bytecode_offset`, or 0 if the table has none. `version` is 0x0309 to 0x030E.
/// Formats: Objects/lnotab_notes.txt (3.9, 3.10), Objects/locations.md (3.11 on). Never reads past the table.
[[nodiscard]] std::uint32_t python_line(std::uint16_t version, std::span<const std::byte> line_table,
                                        std::uint32_t first_line, std::uint32_t bytecode_offset);

/// Byte offset into the bytecode of PythonFrame::instruction, given PythonCode::code_offset; versions differ in units.
[[nodiscard]] std::uint32_t python_bytecode_offset(std::uint16_t version, std::uint32_t instruction,
                                                   std::uint32_t code_offset);

}  // namespace tidemark
