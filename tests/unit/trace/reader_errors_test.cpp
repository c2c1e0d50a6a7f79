// Files that are no recordings, incomplete, or invalid in spite of right checksums.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "trace/frames.h"
#include "trace/varint.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

Bytes header(std::uint16_t version, std::uint16_t minimum) {
  Bytes bytes;
  append_file_header(bytes);
  store_le(bytes.data() + 8, version);
  store_le(bytes.data() + 10, minimum);
  store_le(bytes.data() + 12, crc32c(std::span(bytes).first(12)));
  return bytes;
}

/// A valid file with one frame after the header, of that type and payload.
Recording read_frame(unsigned type, const std::vector<std::uint8_t>& payload) {
  Bytes bytes = header(1, 1);
  FrameEncoder frames;
  const ByteSpan part = payload;
  frames.append(static_cast<format::FrameType>(type), {&part, 1}, bytes);
  return read_all(bytes);
}

TEST(ReaderErrors, RejectsOtherFiles) {
  EXPECT_THAT(read_all({}).error, HasSubstr("memory is empty"));
  EXPECT_THAT(read_all(bytes_of("\x80\x04pickle of something else")).error,
              HasSubstr("memory is not a tidemark recording but a pickle, as PyTorch memory snapshots are"));
  EXPECT_THAT(read_all(bytes_of("\x89TI")).error, HasSubstr("cut off at offset 3"));
  EXPECT_THAT(read_all(bytes_of("GI")).error,
              HasSubstr("is not a tidemark recording but a text file; tidemark reads recordings"));
}

TEST(ReaderErrors, NamesTheFormatOfOtherFiles) {
  const std::pair<std::string, const char*> files[] = {
      {"\"\"\"Trains a net.\"\"\"\n", "Python source code (to record it: `tidemark run -- python FILE`)"},
      {"import torch\n", "Python source code"},
      {"#!/bin/sh\n", "a script"},
      {"\x7f"
       "ELF\x02",
       "a program or library (ELF)"},
      {"<!DOCTYPE html>", "an HTML page"},
      {"step 1: loss 2.0", "a text file"}};
  for (const auto& [bytes, kind] : files) EXPECT_THAT(read_all(bytes_of(bytes)).error, HasSubstr(kind)) << bytes;
}

TEST(ReaderErrors, NamesBothVersionsOfAFileTooNew) {
  EXPECT_THAT(read_all(header(9, 7)).error, HasSubstr("format version 9 and needs a reader of version 7 or later; this "
                                                      "tidemark reads version 1"));
  EXPECT_EQ(read_all(header(9, 1)).error, "");
}

TEST(ReaderErrors, NamesFilesThatCannotBeOpened) {
  const auto missing = TraceReader::open("/nonexistent/run.tide");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/run.tide: cannot be opened: No such file"));
  const auto folder = TraceReader::open(::testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().message, HasSubstr("is a directory"));
}

TEST(ReaderErrors, SkipsAndCountsWhatItDoesNotKnow) {
  Recording read = read_frame(77, {1, 2, 3});
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.lost(Loss::Kind::unknown_frames), 1U);
  // A record of kind 99, then a string "a" with two bytes of a later version behind it.
  read = read_frame(1, {99, 2, 0, 0, 2, 4, 1, 'a', 5, 5});
  EXPECT_EQ(read.lost(Loss::Kind::unknown_definitions), 1U);
  EXPECT_EQ(read.definitions.strings, std::vector<std::string>{"a"});
  EXPECT_EQ(read.lost(Loss::Kind::torn_tail), 0U);
}

// The number of a kind is not truncated: 260 is not a stack (4).
TEST(ReaderErrors, IgnoresDefinitionsOfLaterVersions) {
  Bytes bytes = header(1, 1);
  FrameEncoder frames;
  const std::vector<std::uint8_t> payload = {0x84, 0x02, 2, 0, 0, 99, 0, 2, 2, 1, 'a'};
  const ByteSpan part = payload;
  frames.append(format::FrameType::definitions, {&part, 1}, bytes);
  const auto reader = TraceReader::from_memory(bytes, "memory");
  ASSERT_TRUE(reader.ok());
  Frame frame;
  std::vector<Event> batch;
  std::vector<format::RecordKind> told;
  while ((*reader)->next_frame(frame, batch, [&](format::RecordKind kind) { told.push_back(kind); }).value()) continue;
  EXPECT_EQ(told, (std::vector{format::RecordKind{99}, format::RecordKind::string}));
}

TEST(ReaderErrors, PassesOverColumnsOfLaterVersions) {
  // A pause at time 1, with a fourteenth column of two bytes, behind three empty ones.
  const Recording read = read_frame(2, {1, 14, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 2, 0, 9, 9});
  ASSERT_EQ(read.events.size(), 1U);
  EXPECT_EQ(describe(read.events[0]), "kind 3 t 1 thread - cpu address 0 size 0 slot - stack -");
  EXPECT_TRUE(read.definitions.losses.empty());
}

TEST(ReaderErrors, EndsWhereFramesAreNonsense) {
  struct Case {
    const char* what;
    unsigned type;
    std::vector<std::uint8_t> payload;
  };
  const std::vector<Case> cases = {
      {"record longer than its frame", 1, {2, 9, 1, 'a'}},
      {"record without a length", 1, {2}},
      {"text longer than its record", 1, {2, 2, 200, 'a'}},
      {"varint without an end", 1, {2, 3, 0x80, 0x80, 0x80}},
      {"location of an undefined string", 1, {3, 4, 0, 1, 0, 5}},
      {"stack whose parent is not before it", 1, {4, 2, 1, 0}},
      {"stack of an undefined location", 1, {4, 2, 0, 1}},
      {"events without columns", 2, {1}},
      {"more events than a frame may hold", 2, {0x81, 0x80, 0x01, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"column longer than the frame", 2, {1, 10, 1, 99, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0}},
      {"too few columns", 2, {1, 9, 1, 1, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0}},
      {"too many columns", 2, {1, 65, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0}},
      {"tag of no kind", 2, {1, 10, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0}},
      {"totals of a pause", 2, {1, 10, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0x24, 0, 0}},
      {"column used up too early", 2, {2, 10, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0}},
      {"column not used up", 2, {1, 10, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}},
      {"bytes behind the columns", 2, {1, 10, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}},
      {"undefined thread", 2, {1, 10, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0x0C, 0, 0, 1}},
      {"undefined stack", 2, {1, 10, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1}},
      {"recent address beyond the table", 2, {1, 10, 1, 1, 1, 0, 0, 2, 1, 1, 0, 0, 0, 0, 0, 0x82, 0x20, 0, 0}},
      {"free of a slot not in use", 2, {1, 10, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0}},
  };
  for (const Case& one : cases) {
    const Recording read = read_frame(one.type, one.payload);
    EXPECT_EQ(read.error, "") << one.what;
    EXPECT_TRUE(read.events.empty()) << one.what;
    EXPECT_EQ(read.lost(Loss::Kind::torn_tail), 16 + one.payload.size()) << one.what;
    ASSERT_EQ(read.definitions.losses.size(), 1U) << one.what;
    EXPECT_THAT(read.definitions.losses[0].text, HasSubstr("offset 16")) << one.what;
  }
}

TEST(ReaderErrors, AHugeClaimedLengthEndsTheReading) {
  Bytes bytes = header(1, 1);
  bytes.resize(32, std::byte{0});
  bytes[16] = std::byte{2};
  bytes[17] = std::byte{1};
  store_le(bytes.data() + 20, std::uint32_t{0xFFFF'FFFF});
  store_le(bytes.data() + 28, crc32c(std::span(bytes).subspan(16, 12)));
  EXPECT_EQ(read_all(bytes).lost(Loss::Kind::torn_tail), 16U);
}

/// Minimum memory of a recording's definitions.
std::size_t memory_of(const Definitions& definitions) {
  std::size_t bytes = definitions.strings.size() * sizeof(std::string);
  for (const std::string& text : definitions.strings) bytes += text.size();
  return bytes;
}

void append_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
  std::array<std::uint8_t, 10> bytes{};
  out.insert(out.end(), bytes.data(), put_varint(bytes.data(), value));
}

/// A string record of `length` bytes that are all the same, as often as a frame may hold it.
std::vector<std::uint8_t> repeated_string(std::size_t length) {
  std::vector<std::uint8_t> body;
  append_varint(body, length);
  body.resize(body.size() + length, 'a');
  std::vector<std::uint8_t> record = {static_cast<std::uint8_t>(format::RecordKind::string)};
  append_varint(record, body.size());
  record.insert(record.end(), body.begin(), body.end());
  std::vector<std::uint8_t> payload(format::kMaxPayloadBytes / record.size() * record.size());
  std::copy(record.begin(), record.end(), payload.begin());
  for (std::size_t filled = record.size(); filled < payload.size(); filled *= 2) {
    std::memcpy(payload.data() + filled, payload.data(), std::min(filled, payload.size() - filled));
  }
  return payload;
}

TEST(ReaderErrors, DefinitionsTakeNoMoreThanTheFileIsWorth) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1} << 20}) {
    Bytes bytes = header(1, 1);
    const std::vector<std::uint8_t> payload = repeated_string(length);
    const ByteSpan part = payload;
    FrameEncoder frames;
    std::vector<std::size_t> offsets;
    for (int frame = 0; frame < 8; ++frame) {
      offsets.push_back(bytes.size());
      frames.append(format::FrameType::definitions, {&part, 1}, bytes);
    }
    ASSERT_LT(bytes.size(), 100'000U) << "the file is small, and says that it is 128 MiB";
    const Recording read = read_all(bytes);
    EXPECT_GT(memory_of(read.definitions), 60U << 20);
    EXPECT_LT(memory_of(read.definitions), (64U << 20) + 100 * bytes.size());
    ASSERT_EQ(read.definitions.losses.size(), 1U);
    const std::size_t wrong = length == 0 ? offsets[0] : offsets[4];
    EXPECT_THAT(read.definitions.losses[0].text, HasSubstr("from offset " + std::to_string(wrong) + " on: "));
    EXPECT_THAT(read.definitions.losses[0].text, HasSubstr("more than 100 times their bytes in the file"));
    EXPECT_EQ(read.lost(Loss::Kind::torn_tail), bytes.size() - wrong);
  }
}

TEST(ReaderErrors, FilesReadLikeMemory) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  for (std::uint64_t n = 0; n < 50'000; ++n) ASSERT_TRUE(writer->event(allocate(n * n, n * 64, n)).ok());
  ASSERT_TRUE(writer->finish({}).ok());
  const std::string path = ::testing::TempDir() + "tidemark_reader_test." + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto reader = TraceReader::open(path);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->size(), bytes.size());
  std::vector<Event> batch;
  std::uint64_t next = 0;
  while (*(*reader)->next(batch)) {
    for (const Event& event : batch) {
      ASSERT_EQ(event.time_ns, next * next);
      ASSERT_EQ(event.size, next);
      ++next;
    }
  }
  EXPECT_EQ(next, 50'000U);
  EXPECT_EQ((*reader)->offset(), bytes.size());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tidemark::testing
