// Conversion of elements: the values, on the host and through a driver, and unsupported conversions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "loading/batch_pipeline.h"
#include "loading/device_conversions.h"
#include "loading/element_conversion.h"
#include "unit/loading/asynchronous_driver.h"

namespace tidemark {
namespace {

using test::AsynchronousDriver;
using ::testing::HasSubstr;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

template <typename To, typename From>
std::vector<To> converted(const ElementConversion& conversion, const std::vector<From>& from) {
  std::vector<To> to(from.size());
  convert(conversion, std::as_bytes(std::span(from)), reinterpret_cast<std::byte*>(to.data()));
  return to;
}

// Bits as IEEE 754 gives them: 1 is 0x3c00 with ten bits of fraction, 65504 the largest, 2^-24 the smallest.
TEST(ElementConversionTest, Float16IsRoundedToTheNearestEven) {
  const ElementConversion conversion{ElementType::float32, ElementType::float16};
  const std::vector<float> values = {0.0f,     -0.0f,    1.0f,       -2.0f,        0.1f,         65504.0f,
                                     65519.9f, 65520.0f, -kInfinite, 0x1p-24f,     0x1p-25f,     0x1.000002p-25f,
                                     0x1p-14f, 2049.0f,  2051.0f,    0x1.ffcp-15f, 0x1.ffep-15f, 0x1p-149f};
  const std::vector<std::uint16_t> bits = {0x0000, 0x8000, 0x3c00, 0xc000, 0x2e66, 0x7bff, 0x7bff, 0x7c00, 0xfc00,
                                           0x0001, 0x0000, 0x0001, 0x0400, 0x6800, 0x6802, 0x0400, 0x0400, 0x0000};
  EXPECT_EQ(converted<std::uint16_t>(conversion, values), bits);
}

TEST(ElementConversionTest, Bfloat16IsRoundedToTheNearestEven) {
  const ElementConversion conversion{ElementType::float32, ElementType::bfloat16};
  const std::vector<float> values = {0.0f,       -0.0f,           1.0f,     0x1.01p0f, 0x1.03p0f, 0x1.010002p0f,
                                     -kInfinite, 0x1.fffffep127f, 0x1p-149f};
  const std::vector<std::uint16_t> bits = {0x0000, 0x8000, 0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xff80, 0x7f80, 0x0000};
  EXPECT_EQ(converted<std::uint16_t>(conversion, values), bits);
}

TEST(ElementConversionTest, NaNStaysNaN) {
  for (const auto to : {ElementType::float16, ElementType::bfloat16}) {
    const std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0xff800001)};
    EXPECT_THAT(converted<std::uint16_t>({ElementType::float32, to}, values), ::testing::Each(0x7fff));
  }
}

TEST(ElementConversionTest, ScaleAndOffset) {
  const std::vector<std::uint8_t> pixels = {0, 1, 2, 255};
  EXPECT_EQ(converted<float>({ElementType::uint8, ElementType::float32}, pixels), (std::vector<float>{0, 1, 2, 255}));
  EXPECT_EQ(converted<float>({ElementType::uint8, ElementType::float32, 0.5f, -3}, pixels),
            (std::vector<float>{-3, -2.5f, -2, 124.5f}));
  // One rounding: 3 * (1 + 2^-23) = 3 + 3 * 2^-23 lies between two numbers, 3 less of it does not.
  EXPECT_EQ(converted<float>({ElementType::float32, ElementType::float32, 0x1.000002p0f, -3}, std::vector<float>{3}),
            (std::vector<float>{0x1.8p-22f}));
  const auto zero = converted<float>({ElementType::float32, ElementType::float32, 2, 0}, std::vector<float>{-0.0f});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(zero[0]), 0x80000000u);
}

TEST(ElementConversionTest, ErrorsNameUnsupportedConversions) {
  EXPECT_EQ(*converted_bytes({ElementType::uint8, ElementType::float16}, 7), 14u);
  EXPECT_EQ(*converted_bytes({ElementType::float32, ElementType::bfloat16}, 8), 4u);
  EXPECT_EQ(converted_bytes({ElementType::float32, ElementType::float16}, 7).error().message,
            "7 bytes are no array of float32");
  EXPECT_THAT(converted_bytes({ElementType::float16, ElementType::float32}, 8).error().message,
              HasSubstr("no conversion from float16 to float32"));
  EXPECT_FALSE(converted_bytes({ElementType::float32, ElementType::uint8}, 8).ok());
  const SourceArray arrays[] = {{0, 3, {}}, {0, 5, ElementConversion{ElementType::float32, ElementType::float16}}};
  EXPECT_EQ(lay_out(arrays).error().message, "array 1: 5 bytes are no array of float32");
}

TEST(BatchLayoutTest, WhatIsConvertedIsCopiedBehindTheResults) {
  const SourceArray arrays[] = {{0, 300, ElementConversion{ElementType::uint8, ElementType::float32}}, {0, 40, {}}};
  const auto layout = lay_out(arrays);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->places[0].result, 0u);
  EXPECT_EQ(layout->places[0].result_bytes, 1200u);
  EXPECT_EQ(layout->places[1].result, 1280u);
  EXPECT_EQ(layout->places[1].copy, 1280u);
  EXPECT_EQ(layout->places[0].copy, 1536u);
  EXPECT_EQ(layout->bytes, 1536u + 512u);
}

/// Batch `number`: 1000 bytes and 700 float32 values.
struct Values {
  std::vector<std::uint8_t> pixels;
  std::vector<float> numbers;
  explicit Values(std::size_t number) {
    for (std::size_t index = 0; index < 1000; ++index) pixels.push_back(static_cast<std::uint8_t>(index * 7 + number));
    for (std::size_t index = 0; index < 700; ++index) numbers.push_back(0.37f * static_cast<float>(index + number));
  }
};

const ElementConversion kPixels{ElementType::uint8, ElementType::float16, 1.0f / 255, -0.5f};
const ElementConversion kNumbers{ElementType::float32, ElementType::bfloat16};

std::optional<SourceBatch> twelve_batches(std::size_t number) {
  if (number == 12) return std::nullopt;
  const auto values = std::make_shared<Values>(number);
  SourceBatch batch;
  batch.arrays = {{reinterpret_cast<std::uint64_t>(values->pixels.data()), 1000, kPixels},
                  {reinterpret_cast<std::uint64_t>(values->numbers.data()), 2800, kNumbers},
                  {reinterpret_cast<std::uint64_t>(values->pixels.data()), 1000, {}}};
  batch.owner = values;
  batch.pinned = number % 3 == 2;
  return batch;
}

template <typename Element>
bool equal(const BatchBytes& array, const std::vector<Element>& expected) {
  return array.bytes == expected.size() * sizeof(Element) &&
         std::memcmp(reinterpret_cast<const void*>(array.address), expected.data(), array.bytes) == 0;
}

bool is_converted(const std::vector<BatchBytes>& arrays, std::size_t number) {
  const Values values(number);
  return equal(arrays[0], converted<std::uint16_t>(kPixels, values.pixels)) &&
         equal(arrays[1], converted<std::uint16_t>(kNumbers, values.numbers)) && equal(arrays[2], values.pixels);
}

TEST(BatchPipelineTest, ArraysAreConvertedOnTheirWay) {
  AsynchronousDriver fake;
  const cuda::Stream compute = fake.make_stream();
  for (const bool on_device : {true, false}) {
    PipelineOptions options;
    if (on_device) options.device = HostToDeviceOptions{0, 1000, 3, 2};
    options.readers = 2;
    auto pipeline = BatchPipeline::create(&fake.driver(), twelve_batches, options);
    ASSERT_TRUE(pipeline.ok());
    std::atomic<int> right = 0;
    while (auto batch = (*pipeline)->next(compute)) {
      if (on_device) {
        fake.launch(compute, [&right, arrays = batch->arrays, number = batch->number] {
          right += is_converted(arrays, number);
        });
      } else {
        right += is_converted(batch->arrays, batch->number);
      }
      (*pipeline)->give_back(*batch, compute);
    }
    fake.synchronize(compute);
    EXPECT_EQ(right, 12);
  }
  EXPECT_EQ(fake.objects(), 1u) << "the test's stream";
}

TEST(BatchPipelineTest, AConversionThatCannotBeMadeIsAnErrorInItsPlace) {
  AsynchronousDriver fake;
  PipelineOptions options;
  options.device = HostToDeviceOptions{0, 1000, 3, 2};
  auto pipeline = BatchPipeline::create(
      &fake.driver(),
      [](std::size_t number) {
        auto batch = twelve_batches(number);
        if (number == 1) batch->arrays[1].bytes = 2799;
        return batch;
      },
      options);
  ASSERT_TRUE(pipeline.ok());
  auto first = (*pipeline)->next(nullptr);
  ASSERT_TRUE(first);
  (*pipeline)->give_back(*first, nullptr);
  try {
    (void)(*pipeline)->next(nullptr);
    FAIL() << "2799 bytes";
  } catch (const BatchPipeline::CopyFailed& failed) {
    EXPECT_EQ(failed.error.message, "array 1: 2799 bytes are no array of float32");
  }
}

TEST(BatchPipelineTest, WorkOfTheProgramThatThrowsLeavesNothingBehind) {
  AsynchronousDriver fake;
  {
    PipelineOptions options;
    options.device = HostToDeviceOptions{0, 1000, 3, 2};
    options.on_device = [](std::span<const BatchBytes>, cuda::Stream) { throw std::runtime_error("no kernel"); };
    auto pipeline = BatchPipeline::create(&fake.driver(), twelve_batches, options);
    ASSERT_TRUE(pipeline.ok());
    EXPECT_THROW((void)(*pipeline)->next(nullptr), std::runtime_error);
  }
  EXPECT_EQ(fake.objects(), 0u);
}

}  // namespace
}  // namespace tidemark
