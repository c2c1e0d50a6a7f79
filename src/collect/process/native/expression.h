// DWARF expressions in call frame information, evaluated without the registers.
#pragma once

#include <cstdint>

#include "collect/process/native/eh_frame.h"

namespace tidemark::process {

/// base + offset, or *(base + offset).
struct SymbolicValue {
  enum class Base : std::uint8_t { none, frame_pointer, stack_pointer };
  Base base = Base::none;
  bool dereferenced = false;
  std::int64_t offset = 0;
};

/// The value of an expression over rbp, rsp and the known `pc`, if it has one of the forms above. Covers the
/// expressions that compilers and linkers write: realigned stacks (*(rbp - 8)), signal frames (*(rsp + 160)), PLT stubs
/// (rsp + 8 + a test of pc).
bool evaluate_expression(const Segment& segment, ByteRange expression, std::uint64_t pc, SymbolicValue* out) noexcept;

}  // namespace tidemark::process
