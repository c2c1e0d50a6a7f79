#include "collect/process/native/unwind_rule.h"

#include <gtest/gtest.h>

#include "bytes.h"

namespace tidemark::process {
namespace {

using RuleKind = UnwindRule::Kind;
using SavedFp = UnwindRule::SavedFp;

FrameRules ordinary() {
  FrameRules rules;
  rules.cfa_register = 7;
  rules.cfa_offset = 8;
  rules.return_address = {RegisterRule::Kind::at_cfa, -8, {}};
  return rules;
}

UnwindRule of(const FrameRules& rules, const Bytes& bytes = {}, bool signal_frame = false) {
  return unwind_rule(bytes.segment(), rules, signal_frame, 0x1000);
}

TEST(UnwindRule, PackingKeepsEveryField) {
  for (const RuleKind kind : {RuleKind::none, RuleKind::sp_offset, RuleKind::fp_indirect, RuleKind::end}) {
    for (const SavedFp saved : {SavedFp::same, SavedFp::at_cfa, SavedFp::at_fp, SavedFp::unknown}) {
      for (const int slot : {0, 1, 63}) {
        for (const int offset : {0, 8, -8, 16, (1 << 21) - 8, -(1 << 21) + 8}) {
          const UnwindRule rule = {kind, saved, static_cast<std::uint8_t>(slot), offset};
          EXPECT_LT(pack(rule), 1u << kRuleBits);
          EXPECT_EQ(unpack(pack(rule)), rule);
        }
      }
    }
  }
}

// CFA = rsp + 16 and rbp saved at CFA - 16: 16/8 << 11 | 2 << 5 | at_cfa 1 << 3 | sp_offset 1.
TEST(UnwindRule, PacksAsDrawn) {
  EXPECT_EQ(pack({RuleKind::sp_offset, SavedFp::at_cfa, 2, 16}), 0x1049u);
}

TEST(UnwindRule, PlainRules) {
  EXPECT_EQ(of(ordinary()), (UnwindRule{RuleKind::sp_offset, SavedFp::same, 0, 8}));
  FrameRules framed = ordinary();
  framed.cfa_register = 6;
  framed.cfa_offset = 16;
  framed.frame_pointer = {RegisterRule::Kind::at_cfa, -16, {}};
  EXPECT_EQ(of(framed), (UnwindRule{RuleKind::fp_offset, SavedFp::at_cfa, 2, 16}));
}

TEST(UnwindRule, RealignedStack) {
  const Bytes bytes = {0x76, 0x78, 0x06, 0x76, 0x00};
  FrameRules rules = ordinary();
  rules.cfa_is_expression = true;
  rules.cfa_expression = {0, 3};
  rules.frame_pointer = {RegisterRule::Kind::at_expression, 0, {3, 5}};
  EXPECT_EQ(of(rules, bytes), (UnwindRule{RuleKind::fp_indirect, SavedFp::at_fp, 0, -8}));
}

TEST(UnwindRule, OutermostFrameEndsTheWalk) {
  FrameRules rules = ordinary();
  rules.return_address.kind = RegisterRule::Kind::undefined;
  EXPECT_EQ(of(rules).kind, RuleKind::end);
}

TEST(UnwindRule, RulesWithOtherRegistersEndTheWalk) {
  FrameRules by_r10 = ordinary();
  by_r10.cfa_register = 10;
  EXPECT_EQ(of(by_r10).kind, RuleKind::end);
  FrameRules moved = ordinary();
  moved.return_address.offset = -16;
  EXPECT_EQ(of(moved).kind, RuleKind::end);
  FrameRules switched = ordinary();
  switched.stack_pointer.kind = RegisterRule::Kind::other;
  EXPECT_EQ(of(switched).kind, RuleKind::end);
  FrameRules huge = ordinary();
  huge.cfa_offset = std::int64_t{1} << 21;
  EXPECT_EQ(of(huge).kind, RuleKind::end);
  FrameRules odd = ordinary();
  odd.cfa_offset = 12;
  EXPECT_EQ(of(odd).kind, RuleKind::end);
}

TEST(UnwindRule, AFramePointerThatCannotBeFollowedIsUnknown) {
  for (const RegisterRule& rule :
       {RegisterRule{RegisterRule::Kind::other, 0, {}}, RegisterRule{RegisterRule::Kind::undefined, 0, {}},
        RegisterRule{RegisterRule::Kind::at_cfa, 8, {}}, RegisterRule{RegisterRule::Kind::at_cfa, -12, {}},
        RegisterRule{RegisterRule::Kind::at_cfa, -512, {}}}) {
    FrameRules rules = ordinary();
    rules.frame_pointer = rule;
    EXPECT_EQ(of(rules), (UnwindRule{RuleKind::sp_offset, SavedFp::unknown, 0, 8}));
  }
}

TEST(UnwindRule, SignalFramesOfTheKernelsLayoutOnly) {
  // CFA = *(rsp + 160), rbp at rsp + 120, return address at rsp + 168
  const Bytes bytes = {0x77, 0xA0, 0x01, 0x06, 0x77, 0xF8, 0x00, 0x77, 0xA8, 0x01};
  FrameRules rules = ordinary();
  rules.cfa_is_expression = true;
  rules.cfa_expression = {0, 4};
  rules.frame_pointer = {RegisterRule::Kind::at_expression, 0, {4, 7}};
  rules.return_address = {RegisterRule::Kind::at_expression, 0, {7, 10}};
  EXPECT_EQ(of(rules, bytes, true).kind, RuleKind::signal_frame);
  EXPECT_EQ(of(rules, bytes, false).kind, RuleKind::end);
  rules.return_address.expression = {4, 7};
  EXPECT_EQ(of(rules, bytes, true).kind, RuleKind::end);
}

}  // namespace
}  // namespace tidemark::process
