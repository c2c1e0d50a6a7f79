#include "model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/model/model_files.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::parse_header;

TEST(Safetensors, HeaderOfTensorsAndMetadata) {
  const auto header = parse_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
      R"("a":{"shape":[],"data_offsets":[0,8],"dtype":"I64"},"none":{"dtype":"F32","shape":[0,9],"data_offsets":[20,20]},)"
      R"("four":{"dtype":"F4","shape":[2,3],"data_offsets":[20,23]}}  )",
      23);
  ASSERT_TRUE(header.ok()) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 4U);
  const StoredTensor& first = header->tensors.front();
  EXPECT_EQ(first.name, "b");
  EXPECT_EQ(first.dtype, "bfloat16");
  EXPECT_THAT(first.shape, ElementsAre(2U, 3U));
  EXPECT_EQ(first.elements, 6U);
  EXPECT_EQ(first.bytes, 12U);
  EXPECT_EQ(header->tensors[1].elements, 1U);
  EXPECT_EQ(header->tensors[2].elements, 0U);
  EXPECT_EQ(header->tensors[3].bytes, 3U);
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

struct BadHeader {
  const char* header;
  std::uint64_t data_bytes;
  const char* problem;
};

class BadHeaders : public ::testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaders, FailWithTheReason) {
  const auto header = parse_header(GetParam().header, GetParam().data_bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.error().message, HasSubstr("model.safetensors: "));
  EXPECT_THAT(header.error().message, HasSubstr(GetParam().problem));
}

constexpr BadHeader kBadHeaders[] = {
    {"", 0, "is not JSON in UTF-8"},
    {"[]", 0, "has a list where its list of tensors should be"},
    {"{\"a\":1}", 0, "has a number in a"},
    {"{\"a\xFF\":{}}", 0, "is not JSON in UTF-8, at byte 4"},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} x)", 1, "is not JSON"},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2,
     "has a twice"},
    {R"({"__metadata__":{"x":"1","x":"2"}})", 0, "has x twice in __metadata__"},
    {R"({"__metadata__":{"x":{"y":"2"}}})", 0, "has an object in x"},
    {R"({"a":{"dtype":"U8","shape":[1]}})", 1, "lacks dtype, shape or data_offsets of a"},
    {R"({"a":{"dtype":"U8","dtype":"U8"}})", 1, "has the dtype of a twice"},
    {R"({"a":{"dtype":"U8","stride":[1]}})", 1, "has a field stride of a"},
    {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "a negative number in a"},
    {R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1, "a fraction in a"},
    {R"({"a":{"dtype":"U8","shape":[[[[1]]]],"data_offsets":[0,1]}})", 1, "a list in a"},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "a number in a"},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, "no pair in a"},
    {R"({"a":{"dtype":"Q3","shape":[1],"data_offsets":[0,1]}})", 1, "a is of type Q3"},
    {R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", 1, "a ends within a byte"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "its type and shape take 8 bytes"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "lies at bytes 4 to 0"},
    {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "larger than any memory"},
    {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0, "a fraction in a"},
    {R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 8, "ends at byte 9 of the data, of which there are 8"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 9, "1 bytes after the last tensor"},
    {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3,
     "b begins at byte 1 of the data, in the tensor before it"},
    {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "bytes 0 to 1 of the data belong to no tensor"},
};
INSTANTIATE_TEST_SUITE_P(Safetensors, BadHeaders, ::testing::ValuesIn(kBadHeaders));

TEST(Safetensors, NamesHaveAnEnd) {
  const std::string long_name(1001, 'n');
  const auto header = parse_header("{\"" + long_name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.error().message, HasSubstr("longer than 1000 bytes"));
}

TEST(Safetensors, DimensionsHaveAnEnd) {
  std::string sizes = "1";
  for (int more = 0; more < 64; ++more) sizes += ",1";
  const auto header = parse_header(R"({"a":{"dtype":"U8","data_offsets":[0,1],"shape":[)" + sizes + "]}}", 1);
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.error().message, HasSubstr("more than 64 dimensions of a"));
}

std::string problem_of_start(const std::string& start, std::uint64_t file_bytes) {
  const auto length = safetensors_header_bytes(std::as_bytes(std::span(start)), file_bytes, "f");
  return length ? std::string() : length.error().message;
}

TEST(Safetensors, NamesTheFormatOfOtherFiles) {
  using namespace std::string_literals;
  EXPECT_EQ(problem_of_start("\x10\0\0\0\0\0\0\0"s, 24), "");
  EXPECT_THAT(problem_of_start("\x11\0\0\0\0\0\0\0"s, 24), HasSubstr("ends in its header"));
  EXPECT_THAT(problem_of_start("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, 24), HasSubstr("18446744073709551615 bytes"));
  EXPECT_THAT(problem_of_start("\x01\xE1\xF5\x05\0\0\0\0"s, 1ULL << 40), HasSubstr("100000000 are the most"));
  EXPECT_THAT(problem_of_start("PK\x03\x04\0\0\x08\x08"s, 1 << 20), HasSubstr("torch.save"));
  EXPECT_EQ(problem_of_start("\x80\0\0\0\0\0\0\0"s, 1000), "");  // as a pickle begins, but a length of 128
  EXPECT_THAT(problem_of_start("version "s, 130), HasSubstr("Git LFS"));
  EXPECT_THAT(problem_of_start("abc"s, 3), HasSubstr("too few"));
}

}  // namespace
}  // namespace tidemark
