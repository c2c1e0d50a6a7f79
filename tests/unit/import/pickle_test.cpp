// Files that end too early, and bytes from anywhere but a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "import/pytorch_snapshot/read_snapshot.h"

namespace tidemark::pytorch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Bytes = std::vector<std::byte>;

Bytes file(const std::string& name) {
  std::ifstream stream(std::string(TIDEMARK_SNAPSHOTS "/") + name, std::ios::binary);
  Bytes bytes;
  for (std::istreambuf_iterator<char> at(stream), end; at != end; ++at) bytes.push_back(static_cast<std::byte>(*at));
  return bytes;
}

Result<Snapshot> read(std::span<const std::byte> bytes) {
  return read_snapshot(make_memory_stream(bytes, "here"));
}

class CutOff : public testing::TestWithParam<const char*> {};

TEST_P(CutOff, AtEveryByte) {
  const Bytes whole = file(GetParam());
  ASSERT_GT(whole.size(), 2000U);
  ASSERT_TRUE(read(whole).ok());
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));  // for ASan: nothing behind it
    const auto snapshot = read(cut);
    ASSERT_FALSE(snapshot.ok()) << size;
    ASSERT_EQ(snapshot.error().message, "here: offset " + std::to_string(size) + ": the file is cut off");
  }
}

INSTANTIATE_TEST_SUITE_P(Writers, CutOff, testing::Values("small.pickle", "torch_writer.pickle"));

TEST(CutOffPacked, AtEveryByte) {
  const Bytes whole = file("small.pickle");
  Bytes packed(::compressBound(whole.size()) + 32);
  ::z_stream stream = {};
  ASSERT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(whole.data()));
  stream.avail_in = static_cast<uInt>(whole.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);

  ASSERT_TRUE(read(packed).ok());
  constexpr std::size_t kTrailer = 8;  // checksum and length; the last few bits of the text may lie before it
  for (std::size_t size = 2; size + kTrailer + 1 < packed.size(); ++size) {
    const auto snapshot = read(std::span(packed).first(size));
    ASSERT_FALSE(snapshot.ok()) << size;
    ASSERT_EQ(snapshot.error().message, "here: the packed file (gzip) is cut off at offset " + std::to_string(size));
  }
}

TEST(ReadSnapshot, ReadsNoFurtherThanThePickle) {
  const Bytes whole = file("small.pickle");
  Bytes garbage = whole;
  garbage.insert(garbage.end(), 100, std::byte{0xFF});
  const auto expected = read(whole);
  const auto snapshot = read(garbage);
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  EXPECT_EQ(snapshot->traces.size(), expected->traces.size());
}

TEST(LooksLikeSnapshot, ByTheFirstBytes) {
  const auto looks = [](std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return looks_like_snapshot(bytes);
  };
  for (const int protocol : {2, 3, 4, 5}) EXPECT_TRUE(looks({0x80, protocol, 0x7D, 0x94}));
  EXPECT_TRUE(looks({0x1F, 0x8B, 0x08, 0x00}));          // RFC 1952
  EXPECT_TRUE(looks({0xFD, '7', 'z', 'X', 'Z', 0x00}));  // the .xz file format, 2.1.1.1
  EXPECT_TRUE(looks({0x28, 0xB5, 0x2F, 0xFD}));          // RFC 8878
  EXPECT_FALSE(looks({0x80, 6, 0x7D}));
  EXPECT_FALSE(looks({0x80, 1, 0x7D}));
  EXPECT_FALSE(looks({0x80}));
  EXPECT_FALSE(looks({}));
  EXPECT_FALSE(looks({'P', 'K', 3, 4}));
  EXPECT_FALSE(looks({'{', '"'}));
}

TEST(ReadSnapshot, NamesTheFileThatIsNotThere) {
  EXPECT_THAT(read_snapshot("no/such/file").error().message,
              AllOf(StartsWith("no/such/file: "), HasSubstr("No such file")));
  EXPECT_THAT(read_snapshot("/").error().message, HasSubstr("directory"));
}

TEST(ReadSnapshot, ReportsProgress) {
  const Bytes whole = file("small.pickle");
  std::uint64_t last = 0;
  const auto snapshot = read_snapshot(make_memory_stream(whole, "here"), [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_EQ(all, whole.size());
    EXPECT_GE(done, last);
    last = done;
  });
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(last, whole.size());
}

}  // namespace
}  // namespace tidemark::pytorch
