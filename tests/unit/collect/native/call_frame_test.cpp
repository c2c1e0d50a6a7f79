#include "collect/process/native/call_frame.h"

#include <gtest/gtest.h>

#include <optional>

#include "bytes.h"

namespace tidemark::process {
namespace {

using RegisterKind = RegisterRule::Kind;

constexpr std::uint64_t kFunction = 0x1000;

// The CIE of every x86-64 compiler (DW_CFA_def_cfa rsp+8, DW_CFA_offset ra at cfa-8), then `fde`.
std::optional<FrameRules> rules_at(std::uint64_t offset, const Bytes& fde) {
  Bytes bytes = {0x0C, 7, 8, 0x90, 1};
  const std::size_t cie_end = bytes.data.size();
  bytes.data.insert(bytes.data.end(), fde.data.begin(), fde.data.end());
  FrameDescription frame;
  frame.pc_begin = kFunction;
  frame.pc_end = kFunction + 0x1000000;
  frame.data_alignment = -8;
  frame.return_address_register = 16;
  frame.cie_instructions = {0, cie_end};
  frame.fde_instructions = {cie_end, bytes.data.size()};
  FrameRules rules;
  if (!frame_rules_at(bytes.segment(), frame, kFunction + offset, &rules)) return std::nullopt;
  return rules;
}

void expect_cfa(std::uint64_t offset, const Bytes& fde, std::uint64_t reg, std::int64_t cfa_offset) {
  const auto rules = rules_at(offset, fde);
  ASSERT_TRUE(rules.has_value()) << offset;
  EXPECT_FALSE(rules->cfa_is_expression) << offset;
  EXPECT_EQ(rules->cfa_register, reg) << offset;
  EXPECT_EQ(rules->cfa_offset, cfa_offset) << offset;
}

TEST(CallFrame, StartsWithTheRulesOfTheCie) {
  expect_cfa(0, {}, 7, 8);
  const auto rules = rules_at(0, {});
  EXPECT_EQ(rules->return_address.kind, RegisterKind::at_cfa);
  EXPECT_EQ(rules->return_address.offset, -8);
  EXPECT_EQ(rules->frame_pointer.kind, RegisterKind::same);
}

// push %rbp; mov %rsp,%rbp; …; pop %rbp; ret; and more code after the epilogue.
TEST(CallFrame, FollowsAFunctionWithFramePointer) {
  const Bytes fde = {0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, 6, 0x02, 0x20, 0x0A, 0x0C, 7, 8, 0xC6, 0x41, 0x0B};
  expect_cfa(0, fde, 7, 8);
  expect_cfa(1, fde, 7, 16);
  EXPECT_EQ(rules_at(1, fde)->frame_pointer.offset, -16);
  expect_cfa(3, fde, 7, 16);
  expect_cfa(4, fde, 6, 16);
  expect_cfa(0x23, fde, 6, 16);
  expect_cfa(0x24, fde, 7, 8);
  EXPECT_EQ(rules_at(0x24, fde)->frame_pointer.kind, RegisterKind::same);
  expect_cfa(0x25, fde, 6, 16);  // the remembered state
  EXPECT_EQ(rules_at(0x25, fde)->frame_pointer.kind, RegisterKind::at_cfa);
}

TEST(CallFrame, AdvancesByEveryWidth) {
  const Bytes fde = {0x02, 0x10, 0x0E, 16, 0x03, 0x00, 0x10, 0x0E, 24, 0x04, 0, 0, 0x10, 0, 0x0E, 32};
  expect_cfa(0x0F, fde, 7, 8);
  expect_cfa(0x10, fde, 7, 16);
  expect_cfa(0x1010, fde, 7, 24);
  expect_cfa(0x10100F, fde, 7, 24);
  expect_cfa(0x101010, fde, 7, 32);
}

TEST(CallFrame, SetLocIsAbsolute) {
  // encoding 0 (absolute, 8 bytes)
  const Bytes fde = {0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0E, 48};
  expect_cfa(0x1F, fde, 7, 8);
  expect_cfa(0x20, fde, 7, 48);
}

TEST(CallFrame, FactorsSignedOffsets) {
  expect_cfa(0, {0x12, 6, 0x7E}, 6, 16);                              // DW_CFA_def_cfa_sf rbp, -2 * -8
  expect_cfa(0, {0x13, 0x7D}, 7, 24);                                 // DW_CFA_def_cfa_offset_sf -3 * -8
  EXPECT_EQ(rules_at(0, {0x05, 6, 3})->frame_pointer.offset, -24);    // offset_extended
  EXPECT_EQ(rules_at(0, {0x11, 6, 0x7E})->frame_pointer.offset, 16);  // offset_extended_sf
  EXPECT_EQ(rules_at(0, {0x2F, 6, 2})->frame_pointer.offset, 16);     // GNU_negative_offset_extended
}

TEST(CallFrame, KnowsEveryKindOfRegisterRule) {
  EXPECT_EQ(rules_at(0, {0x07, 16})->return_address.kind, RegisterKind::undefined);
  EXPECT_EQ(rules_at(0, {0x86, 2, 0x08, 6})->frame_pointer.kind, RegisterKind::same);
  EXPECT_EQ(rules_at(0, {0x09, 6, 3})->frame_pointer.kind, RegisterKind::other);
  EXPECT_EQ(rules_at(0, {0x14, 7, 2})->stack_pointer.kind, RegisterKind::other);
  EXPECT_EQ(rules_at(0, {0x15, 7, 0x7E})->stack_pointer.kind, RegisterKind::other);
  EXPECT_EQ(rules_at(0, {0x16, 7, 1, 0x30})->stack_pointer.kind, RegisterKind::other);
  const auto rules = rules_at(0, {0x10, 6, 2, 0x76, 0x00});
  EXPECT_EQ(rules->frame_pointer.kind, RegisterKind::at_expression);
  EXPECT_EQ(rules->frame_pointer.expression.end - rules->frame_pointer.expression.begin, 2u);
  EXPECT_EQ(rules_at(0, {0x86, 2, 0x06, 6})->frame_pointer.kind, RegisterKind::same);  // restore_extended
}

TEST(CallFrame, IgnoresOtherRegistersAndArgumentSizes) {
  expect_cfa(0, {0x83, 3, 0x8C, 4, 0x2E, 32, 0x00, 0xC3}, 7, 8);
}

TEST(CallFrame, CfaExpressionIsReplacedOnlyAsAWhole) {
  const auto rules = rules_at(0, {0x0F, 3, 0x76, 0x78, 0x06});
  ASSERT_TRUE(rules.has_value());
  EXPECT_TRUE(rules->cfa_is_expression);
  EXPECT_EQ(rules->cfa_expression.end - rules->cfa_expression.begin, 3u);
  expect_cfa(0, {0x0F, 3, 0x76, 0x78, 0x06, 0x0C, 7, 8}, 7, 8);
  EXPECT_FALSE(rules_at(0, {0x0F, 3, 0x76, 0x78, 0x06, 0x0E, 8}).has_value());
}

TEST(CallFrame, RefusesMalformedInstructions) {
  EXPECT_FALSE(rules_at(0, {0x3F}).has_value());           // unknown
  EXPECT_FALSE(rules_at(0, {0x0B}).has_value());           // nothing remembered
  EXPECT_FALSE(rules_at(0, {0x0C, 7}).has_value());        // operand missing
  EXPECT_FALSE(rules_at(0, {0x0F, 9, 0x76}).has_value());  // block beyond the end
  Bytes nested;
  for (int i = 0; i < 9; ++i) nested.append({0x0A});
  EXPECT_FALSE(rules_at(0, nested).has_value());
}

TEST(CallFrame, StopsBeforeInstructionsOfLaterAddresses) {
  expect_cfa(0, {0x41, 0x3F}, 7, 8);
  EXPECT_FALSE(rules_at(1, {0x41, 0x3F}).has_value());
}

}  // namespace
}  // namespace tidemark::process
