#include "collect/process/native/byte_reader.h"

#include <gtest/gtest.h>

#include "bytes.h"

namespace tidemark::process {
namespace {

ByteReader whole(const Bytes& bytes) {
  return ByteReader(bytes.segment(), 0, bytes.data.size());
}

// The examples of DWARF 5, tables 7.7 and 7.8.
TEST(ByteReader, ReadsTheStandardsLeb128Examples) {
  const Bytes unsigned_bytes = {2, 127, 0x80, 1, 0x81, 1, 0xB9, 0x64};
  ByteReader reader = whole(unsigned_bytes);
  EXPECT_EQ(reader.uleb128(), 2u);
  EXPECT_EQ(reader.uleb128(), 127u);
  EXPECT_EQ(reader.uleb128(), 128u);
  EXPECT_EQ(reader.uleb128(), 129u);
  EXPECT_EQ(reader.uleb128(), 12857u);
  EXPECT_TRUE(reader.at_end());

  const Bytes signed_bytes = {2, 0x7E, 0xFF, 0, 0x81, 0x7F, 0x80, 1, 0x80, 0x7F, 0x81, 1, 0xFF, 0x7E};
  ByteReader signed_reader = whole(signed_bytes);
  for (const int expected : {2, -2, 127, -127, 128, -128, 129, -129}) EXPECT_EQ(signed_reader.sleb128(), expected);
  EXPECT_FALSE(signed_reader.failed());
}

TEST(ByteReader, DropsBitsBeyondTheSixtyFourth) {
  const Bytes bytes = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
  EXPECT_EQ(whole(bytes).uleb128(), ~std::uint64_t{0});
  EXPECT_EQ(whole(bytes).sleb128(), -1);
}

TEST(ByteReader, FailsAtTheEndAndStaysThere) {
  const Bytes bytes = {0x80, 0x80};
  ByteReader reader = whole(bytes);
  EXPECT_EQ(reader.uleb128(), 0u);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.read<std::uint8_t>(), 0);
  EXPECT_TRUE(reader.at_end());

  ByteReader short_reader = whole(bytes);
  EXPECT_EQ(short_reader.read<std::uint32_t>(), 0u);
  EXPECT_TRUE(short_reader.failed());

  ByteReader skipping = whole(bytes);
  skipping.skip(~std::uint64_t{0});
  EXPECT_TRUE(skipping.failed());
}

TEST(ByteReader, ARangeOutsideTheSegmentFails) {
  const Bytes bytes = {1, 2, 3};
  EXPECT_TRUE(ByteReader(bytes.segment(), 0, 4).failed());
  EXPECT_TRUE(ByteReader(bytes.segment(), 3, 2).failed());
  EXPECT_TRUE(ByteReader(bytes.segment(), 100, 200).failed());
}

TEST(ByteReader, AppliesPointerEncodings) {
  Bytes bytes = {0xFE, 0xFF, 0xFF, 0xFF};
  EXPECT_EQ(whole(bytes).pointer(0x1B, 0), 0xFFFEu);                // pcrel | sdata4: 0x10000 - 2
  EXPECT_EQ(whole(bytes).pointer(0x3B, 0x500), 0x4FEu);             // datarel | sdata4
  EXPECT_EQ(whole(bytes).pointer(0x03, 0), 0xFFFFFFFEu);            // udata4
  EXPECT_EQ(whole(bytes).pointer(0x0A, 0), ~std::uint64_t{0} - 1);  // sdata2
  EXPECT_EQ(whole(bytes).pointer(0xFF, 0), 0u);                     // omitted: nothing is read
  ByteReader unknown = whole(bytes);
  unknown.pointer(0x05, 0);
  EXPECT_TRUE(unknown.failed());
  ByteReader aligned = whole(bytes);
  aligned.pointer(0x53, 0);
  EXPECT_TRUE(aligned.failed());
}

}  // namespace
}  // namespace tidemark::process
