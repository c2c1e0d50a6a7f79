// How to get from one frame to its caller, in 30 bits, so that a cached rule and its key fit one atomic word.
#pragma once

#include <cstdint>

#include "collect/process/native/call_frame.h"

namespace tidemark::process {

struct UnwindRule {
  enum class Kind : std::uint8_t {
    none,                 ///< an empty cache entry
    sp_offset,            ///< CFA = rsp + cfa_offset
    fp_offset,            ///< CFA = rbp + cfa_offset
    fp_indirect,          ///< CFA = *(rbp + cfa_offset): functions that realign their stack
    frame_pointer_chain,  ///< no rule for this address: try the chain of frame pointers
    signal_frame,         ///< the registers are in the ucontext_t at rsp
    end,                  ///< the outermost frame, or an unsupported rule
  };
  enum class SavedFp : std::uint8_t {
    same,     ///< rbp still holds the caller's value
    at_cfa,   ///< *(CFA - 8 * fp_slot)
    at_fp,    ///< *(rbp + 8 * fp_slot)
    unknown,  ///< lost: a caller that needs it ends the walk
  };

  Kind kind = Kind::none;
  SavedFp saved_fp = SavedFp::same;
  std::uint8_t fp_slot = 0;     ///< 0..63
  std::int32_t cfa_offset = 0;  ///< bytes, a multiple of 8, within ±2 MiB

  bool operator==(const UnwindRule&) const = default;
};

//  29                 11 10      5 4   3 2    0
// +---------------------+---------+-----+------+
// | cfa_offset / 8      | fp_slot | fp  | kind |
// +---------------------+---------+-----+------+
inline constexpr unsigned kRuleBits = 30;

constexpr std::uint32_t pack(const UnwindRule& rule) {
  return static_cast<std::uint32_t>(rule.kind) | static_cast<std::uint32_t>(rule.saved_fp) << 3 |
         static_cast<std::uint32_t>(rule.fp_slot) << 5 |
         (static_cast<std::uint32_t>(rule.cfa_offset / 8) & 0x7FFFF) << 11;
}

/// The inverse of pack(); bits above the 30th are ignored.
constexpr UnwindRule unpack(std::uint32_t bits) {
  UnwindRule rule;
  rule.kind = static_cast<UnwindRule::Kind>(bits & 7);
  rule.saved_fp = static_cast<UnwindRule::SavedFp>(bits >> 3 & 3);
  rule.fp_slot = static_cast<std::uint8_t>(bits >> 5 & 63);
  rule.cfa_offset = (static_cast<std::int32_t>(bits << 2) >> 13) * 8;
  return rule;
}

/// Offsets in the ucontext_t that the kernel leaves at rsp when a signal handler returns to its trampoline.
inline constexpr std::int64_t kSignalFrameFp = 120;
inline constexpr std::int64_t kSignalFrameSp = 160;
inline constexpr std::int64_t kSignalFramePc = 168;

/// Converts the frame rules in force at `pc` for a walk that has rsp, rbp and the stack. Rules that need more become
/// `end`, a frame pointer that needs more becomes `unknown`.
UnwindRule unwind_rule(const Segment& segment, const FrameRules& rules, bool signal_frame, std::uint64_t pc) noexcept;

/// The rule at `pc` in a module with its .eh_frame_hdr and .eh_frame in `segment`.
UnwindRule unwind_rule_at(const Segment& segment, std::uint64_t header_address, std::uint64_t pc) noexcept;

}  // namespace tidemark::process
