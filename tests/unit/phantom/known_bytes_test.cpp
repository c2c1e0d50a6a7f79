// Values in device memory, compared with two plain arrays: of the values, and of which are known.
#include "phantom/gpu/known_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "phantom/gpu/memory.h"

namespace tidemark::phantom {

/// Of the library: see memory.cpp.
extern "C" void tidemark_on_block(void* address, std::size_t bytes);

namespace {

TEST(KnownBytes, AgreesWithPlainArrays) {
  constexpr std::size_t kBytes = 64;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<char> memory(kBytes, 0);
    std::vector<char> values(kBytes, 0);
    std::vector<char> known(kBytes, 0);
    KnownBytes bytes;
    for (int step = 0; step < 60; ++step) {
      const std::size_t start = random() % kBytes;
      const std::size_t count = random() % (kBytes - start + 1);
      const std::size_t from = random() % (kBytes - count + 1);
      switch (random() % 3) {
        case 0: {
          const char value = static_cast<char>(random() % 100 + 1);
          std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(start), count, value);
          std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(start), count, value);
          std::fill_n(known.begin() + static_cast<std::ptrdiff_t>(start), count, 1);
          bytes.add(memory.data() + start, count);
          break;
        }
        case 1:
          std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(start), count, 0);
          std::fill_n(known.begin() + static_cast<std::ptrdiff_t>(start), count, 0);
          bytes.forget(memory.data() + start, count);
          break;
        default:
          std::memmove(values.data() + start, values.data() + from, count);
          std::memmove(known.data() + start, known.data() + from, count);
          bytes.copy(memory.data() + start, memory.data() + from, count);
      }
      ASSERT_EQ(memory, values) << "seed " << seed << ", step " << step;
      ASSERT_EQ(bytes.total(), static_cast<std::size_t>(std::count(known.begin(), known.end(), 1)));
      for (std::size_t index = 0; index < kBytes; ++index) {
        ASSERT_EQ(bytes.knows(memory.data() + index, 1), known[index] != 0)
            << "seed " << seed << ", step " << step << ", byte " << index;
      }
    }
  }
}

// A block that PyTorch's allocator uses again does not have the values of the block before it.
TEST(KnownBytes, ANewBlockHasNone) {
  auto* const device = static_cast<char*>(allocate_device(0, 1 << 20));
  ASSERT_NE(device, nullptr);
  const std::vector<int> labels = {7, 8, 9};
  const std::size_t bytes = labels.size() * sizeof(int);
  const auto read = [&](const char* from) {
    std::vector<int> host(labels.size(), -1);
    copy(host.data(), from, bytes);
    return host;
  };
  copy(device + 512, labels.data(), bytes);
  EXPECT_EQ(read(device + 512), labels);
  copy(device + 4096, device + 512, bytes);
  EXPECT_EQ(read(device + 4096), labels) << "a copy on the device";

  tidemark_on_block(device + 512, 512);
  EXPECT_EQ(read(device + 512), std::vector<int>(3, 0));
  EXPECT_EQ(read(device + 4096), labels);

  copy(device + 4096, device + 512, bytes);
  EXPECT_EQ(read(device + 4096), std::vector<int>(3, 0)) << "a copy of what is not known";
  EXPECT_TRUE(free_device(device));
}

}  // namespace
}  // namespace tidemark::phantom
