// Tables written by hand after Objects/lnotab_notes.txt and Objects/locations.md, and hostile ones. Tables of real
// interpreters are compared in python_walker_test.py.
#include "collect/recorder/lanes/python_lines.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

namespace tidemark {
namespace {

constexpr std::uint16_t kLocationVersions[] = {0x030B, 0x030C, 0x030D, 0x030E};
constexpr std::uint16_t kFormats[] = {0x0309, 0x030A, 0x030B};

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(PythonLines, LnotabOf39) {
  // The example of lnotab_notes.txt: offsets 0, 6, 50, 350, 361 are lines 1, 2, 7, 207, 208.
  const auto table = bytes({6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1});
  const auto line = [&](std::uint32_t offset) { return python_line(0x0309, table, 1, offset); };
  EXPECT_EQ(line(0), 1U);
  EXPECT_EQ(line(5), 1U);
  EXPECT_EQ(line(6), 2U);
  EXPECT_EQ(line(49), 2U);
  EXPECT_EQ(line(50), 7U);
  EXPECT_EQ(line(349), 7U);
  EXPECT_EQ(line(350), 207U);
  EXPECT_EQ(line(361), 208U);
  EXPECT_EQ(line(100000), 208U);
}

TEST(PythonLines, LnotabGoesBackwards) {
  const auto table = bytes({4, 10, 4, 0xFD});  // +10 lines at 4, -3 at 8
  EXPECT_EQ(python_line(0x0309, table, 5, 4), 15U);
  EXPECT_EQ(python_line(0x0309, table, 5, 8), 12U);
}

TEST(PythonLines, RangesOf310) {
  // lnotab_notes.txt: (end, line delta); -128 means no line; a delta that does not fit comes in an empty range first.
  const auto table = bytes({6, 0, 4, 0x80, 2, 5, 0, 127, 8, 73, 4, 0xFE});
  const auto line = [&](std::uint32_t offset) { return python_line(0x030A, table, 7, offset); };
  EXPECT_EQ(line(0), 7U);
  EXPECT_EQ(line(4), 7U);
  EXPECT_EQ(line(6), 0U);
  EXPECT_EQ(line(10), 12U);
  EXPECT_EQ(line(12), 212U);
  EXPECT_EQ(line(18), 212U);
  EXPECT_EQ(line(20), 210U);
  EXPECT_EQ(line(24), 0U);  // past the last range
}

TEST(PythonLines, LocationsOf311) {
  // 1cccclll, then the data of the kind; the line of each is a delta to the entry before.
  const auto table = bytes({
      0x80 | 0 << 3 | 0,
      0x12,  // short form, 1 unit: same line
      0x80 | 10 << 3 | 1,
      4,
      9,  // one line, 2 units: same line
      0x80 | 11 << 3 | 0,
      4,
      9,  // one line, 1 unit: next line
      0x80 | 12 << 3 | 7,
      4,
      9,  // one line, 8 units: two further
      0x80 | 13 << 3 | 0,
      0x07,  // no columns: svarint 7 = -3
      0x80 | 14 << 3 | 0,
      0x50,
      3,
      1,
      1,
      2  // long form: svarint 0x10 + 3 * 64 = 208 = +104, then three varints
      ,
      0x80 | 15 << 3 | 2  // no location, 3 units
  });
  for (const std::uint16_t version : kLocationVersions) {
    const auto line = [&](std::uint32_t offset) { return python_line(version, table, 20, offset); };
    EXPECT_EQ(line(0), 20U);
    EXPECT_EQ(line(2), 20U);
    EXPECT_EQ(line(4), 20U);
    EXPECT_EQ(line(6), 21U);
    EXPECT_EQ(line(8), 23U);
    EXPECT_EQ(line(22), 23U);
    EXPECT_EQ(line(24), 20U);
    EXPECT_EQ(line(26), 124U);
    EXPECT_EQ(line(28), 0U);
    EXPECT_EQ(line(32), 0U);
    EXPECT_EQ(line(34), 0U);  // past the end
  }
}

TEST(PythonLines, BeforeTheFirstInstruction) {
  const auto table = bytes({0x80, 0x12});
  EXPECT_EQ(python_line(0x0309, {}, 3, python_bytecode_offset(0x0309, 0xFFFFFFFF, 0)), 3U);
  EXPECT_EQ(python_line(0x030A, {}, 3, python_bytecode_offset(0x030A, 0xFFFFFFFF, 0)), 3U);
  EXPECT_EQ(python_line(0x030B, table, 3, python_bytecode_offset(0x030B, 182, 184)), 3U);
}

TEST(PythonLines, UnitsOfTheInstruction) {
  EXPECT_EQ(python_bytecode_offset(0x0309, 10, 0), 10U);
  EXPECT_EQ(python_bytecode_offset(0x030A, 10, 0), 20U);
  EXPECT_EQ(python_bytecode_offset(0x030B, 194, 184), 10U);
  EXPECT_EQ(python_bytecode_offset(0x030E, 218, 208), 10U);
}

TEST(PythonLines, UnknownVersionsAndEmptyTables) {
  EXPECT_EQ(python_line(0x0308, bytes({6, 1}), 1, 0), 0U);
  EXPECT_EQ(python_line(0x030F, bytes({0x80, 0x12}), 1, 0), 0U);
  EXPECT_EQ(python_line(0x0309, {}, 4, 10), 4U);  // no change of line anywhere: all of it is the first
  EXPECT_EQ(python_line(0x030A, {}, 4, 0), 0U);
  EXPECT_EQ(python_line(0x030D, {}, 4, 0), 0U);
}

TEST(PythonLines, LinesOutOfRangeAreUnknown) {
  EXPECT_EQ(python_line(0x030A, bytes({2, 0x81}), 100, 0), 0U);  // 100 - 127
  EXPECT_EQ(python_line(0x030A, bytes({2, 1}), 0x7FFFFFFF, 0), 0U);
  EXPECT_EQ(python_line(0x030B, bytes({0x80 | 13 << 3, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x3F}), 1, 0), 0U);
}

// Each table is in an allocation of exactly its size, so that AddressSanitizer sees any read past its end.
TEST(PythonLines, AnyBytesAreReadWithinBounds) {
  std::minstd_rand engine(20240607);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine() >> 4); };
  for (int round = 0; round < 20000; ++round) {
    const std::size_t size = random() % 24;
    const std::unique_ptr<std::byte[]> table(new std::byte[size]);
    for (std::size_t index = 0; index < size; ++index) table[index] = static_cast<std::byte>(random());
    for (const std::uint16_t version : kFormats) {
      EXPECT_LE(python_line(version, {table.get(), size}, random() % 100, random() % 400), 0x7FFFFFFFU);
    }
  }
}

TEST(PythonLines, TruncatedVarints) {
  for (const unsigned kind : {13U, 14U}) {
    for (const std::size_t length : {1U, 2U, 3U}) {
      const std::unique_ptr<std::byte[]> table(new std::byte[length]);
      std::memset(table.get(), 0x7F, length);
      table[0] = static_cast<std::byte>(0x80 | kind << 3);
      EXPECT_EQ(python_line(0x030C, {table.get(), length}, 1, 0), 0U);
    }
  }
}

}  // namespace
}  // namespace tidemark
