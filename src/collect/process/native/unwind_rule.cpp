#include "collect/process/native/unwind_rule.h"

#include "collect/process/native/expression.h"

namespace tidemark::process {
namespace {

using Base = SymbolicValue::Base;
using Kind = UnwindRule::Kind;
using SavedFp = UnwindRule::SavedFp;

constexpr UnwindRule kEnd = {Kind::end, SavedFp::same, 0, 0};
constexpr std::int64_t kMaxCfaOffset = (std::int64_t{1} << 21) - 8;
constexpr std::int64_t kMaxFpSlot = 63;

bool stack_value(const Segment& segment, const RegisterRule& rule, std::uint64_t pc, std::int64_t offset) {
  SymbolicValue value;
  return rule.kind == RegisterRule::Kind::at_expression && evaluate_expression(segment, rule.expression, pc, &value) &&
         value.base == Base::stack_pointer && !value.dereferenced && value.offset == offset;
}

/// The C library's trampoline describes the kernel's frame register by register. Only that layout is supported.
UnwindRule signal_rule(const Segment& segment, const FrameRules& rules, std::uint64_t pc) {
  SymbolicValue cfa;
  const bool known = rules.cfa_is_expression && evaluate_expression(segment, rules.cfa_expression, pc, &cfa) &&
                     cfa.base == Base::stack_pointer && cfa.dereferenced && cfa.offset == kSignalFrameSp &&
                     stack_value(segment, rules.frame_pointer, pc, kSignalFrameFp) &&
                     stack_value(segment, rules.return_address, pc, kSignalFramePc);
  return known ? UnwindRule{Kind::signal_frame, SavedFp::unknown, 0, 0} : kEnd;
}

bool set_cfa(const Segment& segment, const FrameRules& rules, std::uint64_t pc, UnwindRule* out) {
  std::int64_t offset = rules.cfa_offset;
  if (rules.cfa_is_expression) {
    SymbolicValue cfa;
    if (!evaluate_expression(segment, rules.cfa_expression, pc, &cfa) || cfa.base == Base::none) return false;
    if (cfa.dereferenced && cfa.base != Base::frame_pointer) return false;
    out->kind =
        cfa.dereferenced ? Kind::fp_indirect : (cfa.base == Base::frame_pointer ? Kind::fp_offset : Kind::sp_offset);
    offset = cfa.offset;
  } else if (rules.cfa_register == kStackPointerRegister) {
    out->kind = Kind::sp_offset;
  } else if (rules.cfa_register == kFramePointerRegister) {
    out->kind = Kind::fp_offset;
  } else {
    return false;
  }
  if (offset % 8 != 0 || offset > kMaxCfaOffset || offset < -kMaxCfaOffset) return false;
  out->cfa_offset = static_cast<std::int32_t>(offset);
  return true;
}

void set_saved_fp(const Segment& segment, const RegisterRule& rule, std::uint64_t pc, UnwindRule* out) {
  SymbolicValue place;
  out->saved_fp = SavedFp::unknown;
  switch (rule.kind) {
    case RegisterRule::Kind::same:
      out->saved_fp = SavedFp::same;
      return;
    case RegisterRule::Kind::at_cfa:
      if (rule.offset % 8 != 0 || rule.offset >= 0 || rule.offset < -8 * kMaxFpSlot) return;
      out->saved_fp = SavedFp::at_cfa;
      out->fp_slot = static_cast<std::uint8_t>(-rule.offset / 8);
      return;
    case RegisterRule::Kind::at_expression:
      if (!evaluate_expression(segment, rule.expression, pc, &place)) return;
      if (place.base != Base::frame_pointer || place.dereferenced) return;
      if (place.offset % 8 != 0 || place.offset < 0 || place.offset > 8 * kMaxFpSlot) return;
      out->saved_fp = SavedFp::at_fp;
      out->fp_slot = static_cast<std::uint8_t>(place.offset / 8);
      return;
    case RegisterRule::Kind::undefined:
    case RegisterRule::Kind::other:
      return;
  }
}

}  // namespace

UnwindRule unwind_rule(const Segment& segment, const FrameRules& rules, bool signal_frame, std::uint64_t pc) noexcept {
  if (signal_frame) return signal_rule(segment, rules, pc);
  // A call leaves the return address just below the CFA. Any other rule is the outermost frame (undefined), or code
  // that moves its return address.
  const RegisterRule& ra = rules.return_address;
  if (ra.kind != RegisterRule::Kind::at_cfa || ra.offset != -8) return kEnd;
  if (rules.stack_pointer.kind != RegisterRule::Kind::same) return kEnd;
  UnwindRule rule;
  if (!set_cfa(segment, rules, pc, &rule)) return kEnd;
  set_saved_fp(segment, rules.frame_pointer, pc, &rule);
  return rule;
}

UnwindRule unwind_rule_at(const Segment& segment, std::uint64_t header_address, std::uint64_t pc) noexcept {
  FrameDescription frame;
  if (!find_frame_description(segment, header_address, pc, &frame)) {
    return {Kind::frame_pointer_chain, SavedFp::same, 0, 0};
  }
  FrameRules rules;
  if (frame.return_address_register != kReturnAddressRegister || !frame_rules_at(segment, frame, pc, &rules)) {
    return kEnd;
  }
  return unwind_rule(segment, rules, frame.signal_frame, pc);
}

}  // namespace tidemark::process
