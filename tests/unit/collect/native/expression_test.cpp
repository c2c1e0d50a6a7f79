#include "collect/process/native/expression.h"

#include <gtest/gtest.h>

#include <optional>

#include "bytes.h"

namespace tidemark::process {
namespace {

using Base = SymbolicValue::Base;

std::optional<SymbolicValue> evaluate(const Bytes& bytes, std::uint64_t pc = 0) {
  SymbolicValue value;
  if (!evaluate_expression(bytes.segment(), {0, bytes.data.size()}, pc, &value)) return std::nullopt;
  return value;
}

void expect_value(const Bytes& bytes, Base base, bool dereferenced, std::int64_t offset, std::uint64_t pc = 0) {
  const auto value = evaluate(bytes, pc);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->base, base);
  EXPECT_EQ(value->dereferenced, dereferenced);
  EXPECT_EQ(value->offset, offset);
}

TEST(Expression, RealignedStack) {
  expect_value({0x76, 0x78, 0x06}, Base::frame_pointer, true, -8);
}

TEST(Expression, SignalFrame) {
  expect_value({0x77, 0xA0, 0x01, 0x06}, Base::stack_pointer, true, 160);
}

// The linker's PLT entries are 16 bytes: the first 11 have pushed nothing yet.
TEST(Expression, ProcedureLinkageTable) {
  const Bytes plt = {0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22};
  expect_value(plt, Base::stack_pointer, false, 8, 0x4010);
  expect_value(plt, Base::stack_pointer, false, 8, 0x401A);
  expect_value(plt, Base::stack_pointer, false, 16, 0x401B);
  expect_value(plt, Base::stack_pointer, false, 16, 0x401F);
}

TEST(Expression, ConstantsOfEveryWidth) {
  expect_value({0x08, 0xFF}, Base::none, false, 255);
  expect_value({0x09, 0xFF}, Base::none, false, -1);
  expect_value({0x0A, 0x34, 0x12}, Base::none, false, 0x1234);
  expect_value({0x0B, 0xFE, 0xFF}, Base::none, false, -2);
  expect_value({0x0C, 0xFF, 0xFF, 0xFF, 0xFF}, Base::none, false, 0xFFFFFFFF);
  expect_value({0x0D, 0xFF, 0xFF, 0xFF, 0xFF}, Base::none, false, -1);
  expect_value({0x0E, 1, 0, 0, 0, 0, 0, 0, 0x10}, Base::none, false, 0x1000000000000001);
  expect_value({0x10, 0x80, 1}, Base::none, false, 128);
  expect_value({0x11, 0x80, 0x7F}, Base::none, false, -128);
}

TEST(Expression, SumsWithARegister) {
  expect_value({0x76, 0, 0x23, 24}, Base::frame_pointer, false, 24);    // plus_uconst
  expect_value({0x38, 0x77, 8, 0x22}, Base::stack_pointer, false, 16);  // constant first
  expect_value({0x77, 40, 0x38, 0x1C}, Base::stack_pointer, false, 32);
}

TEST(Expression, RefusesOtherForms) {
  EXPECT_FALSE(evaluate({}).has_value());
  EXPECT_FALSE(evaluate({0x22}).has_value());                       // nothing to add
  EXPECT_FALSE(evaluate({0x30, 0x31}).has_value());                 // two values left
  EXPECT_FALSE(evaluate({0x76, 0, 0x77, 0, 0x22}).has_value());     // rbp + rsp
  EXPECT_FALSE(evaluate({0x76, 0, 0x06, 0x06}).has_value());        // **rbp
  EXPECT_FALSE(evaluate({0x76, 0, 0x06, 0x38, 0x22}).has_value());  // *rbp + 8
  EXPECT_FALSE(evaluate({0x38, 0x76, 0, 0x06, 0x22}).has_value());  // 8 + *rbp
  EXPECT_FALSE(evaluate({0x76, 0, 0x3F, 0x1A}).has_value());        // rbp & 15
  EXPECT_FALSE(evaluate({0x73, 0}).has_value());                    // rbx
  EXPECT_FALSE(evaluate({0x30, 0x06}).has_value());                 // *0
  EXPECT_FALSE(evaluate({0x31, 0x08, 64, 0x24}).has_value());       // 1 << 64
  EXPECT_FALSE(evaluate({0x76}).has_value());                       // operand missing
  EXPECT_FALSE(evaluate({0x96}).has_value());                       // unknown
  Bytes deep;
  for (int i = 0; i < 9; ++i) deep.append({0x30});
  EXPECT_FALSE(evaluate(deep).has_value());
}

}  // namespace
}  // namespace tidemark::process
