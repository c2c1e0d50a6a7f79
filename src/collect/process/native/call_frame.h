// Runs the call frame instructions of a frame description (DWARF 5, section 6.4.2) up to one address.
#pragma once

#include <cstdint>

#include "collect/process/native/eh_frame.h"

namespace tidemark::process {

/// How to recover a register's value in the caller.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    same,           ///< unchanged, also the default
    undefined,      ///< not recoverable; for the return address: the outermost frame
    at_cfa,         ///< saved at CFA + offset
    at_expression,  ///< saved at the address computed by an expression
    other,          ///< in another register, or computed: not supported here
  };
  Kind kind = Kind::same;
  std::int64_t offset = 0;
  ByteRange expression;
};

/// The rules in force at an address, for the registers needed by a walk.
struct FrameRules {
  bool cfa_is_expression = false;
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  ByteRange cfa_expression;
  RegisterRule frame_pointer;
  RegisterRule stack_pointer;
  RegisterRule return_address;
};

/// DWARF numbers of x86-64 registers (System V ABI, figure 3.36).
inline constexpr std::uint64_t kFramePointerRegister = 6;
inline constexpr std::uint64_t kStackPointerRegister = 7;
inline constexpr std::uint64_t kReturnAddressRegister = 16;

/// Rules at `pc`, which must be covered by `frame`. False if the instructions are malformed, use an unknown one or
/// remember more states than a compiler nests.
bool frame_rules_at(const Segment& segment, const FrameDescription& frame, std::uint64_t pc, FrameRules* out) noexcept;

}  // namespace tidemark::process
