#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tidemark/prefetch_loader.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr tidemark::Conversion kToFloat{tidemark::ElementType::uint8, tidemark::ElementType::float32, 0.5f, -1};

/// Batch `number` of ten: its number as bytes, once as they are and once as numbers.
std::optional<tidemark::HostBatch> read_bytes(std::size_t number) {
  if (number == 10) return std::nullopt;
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(number + 1, static_cast<std::uint8_t>(number));
  return tidemark::HostBatch{{{bytes->data(), bytes->size()}, {bytes->data(), bytes->size(), kToFloat}}, bytes};
}

tidemark::PrefetchSettings on_the_host() {
  tidemark::PrefetchSettings settings;
  settings.device = -1;
  settings.reading_threads = 3;
  return settings;
}

template <typename Element>
std::vector<Element> elements(const tidemark::BatchArray& array) {
  std::vector<Element> copied(array.bytes / sizeof(Element));
  std::memcpy(copied.data(), array.data, array.bytes);
  return copied;
}

TEST(PrefetchLoader, BatchesInOrderAndConverted) {
  tidemark::PrefetchLoader loader(read_bytes, on_the_host());
  std::size_t number = 0;
  while (const auto batch = loader.next()) {
    EXPECT_EQ(batch->number(), number);
    ASSERT_EQ(batch->size(), 2U);
    EXPECT_EQ(elements<std::uint8_t>((*batch)[0]),
              std::vector<std::uint8_t>(number + 1, static_cast<std::uint8_t>(number)));
    EXPECT_EQ(elements<float>((*batch)[1]), std::vector<float>(number + 1, 0.5f * static_cast<float>(number) - 1));
    ++number;
  }
  const tidemark::PrefetchStatistics statistics = loader.statistics();
  EXPECT_EQ(statistics.batches, 10U);
  EXPECT_EQ(statistics.copied_bytes, 0U) << "nothing was copied to a device";
  EXPECT_EQ(statistics.pinned_bytes, 0U);
}

TEST(PrefetchLoader, ProblemsComeInTheirPlace) {
  tidemark::PrefetchLoader loader(
      [](std::size_t number) {
        if (number == 1) throw std::runtime_error("file 1 is broken");
        return read_bytes(number);
      },
      on_the_host());
  EXPECT_TRUE(loader.next());
  EXPECT_THROW((void)loader.next(), std::runtime_error);
  EXPECT_FALSE(loader.next());

  tidemark::PrefetchLoader odd(
      [](std::size_t) {
        const auto bytes = std::make_shared<std::vector<std::uint8_t>>(7);
        const tidemark::Conversion floats{tidemark::ElementType::float32, tidemark::ElementType::float16};
        return std::optional(tidemark::HostBatch{{{bytes->data(), 7, floats}}, bytes});
      },
      on_the_host());
  try {
    (void)odd.next();
    FAIL() << "7 bytes are no float32";
  } catch (const tidemark::Error& error) {
    EXPECT_STREQ(error.what(), "array 0: 7 bytes are no array of float32");
  }
}

TEST(PrefetchLoader, EndsEarlyAndInAForkedChild) {
  tidemark::PrefetchLoader loader(read_bytes, on_the_host());
  EXPECT_TRUE(loader.next());
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      (void)loader.next();
    } catch (const tidemark::Error&) {
      ::_exit(7);
    }
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  loader.stop();
  EXPECT_FALSE(loader.next());
  EXPECT_THROW(tidemark::PrefetchLoader(nullptr, on_the_host()), tidemark::Error);
}

TEST(PrefetchLoader, ABatchThatWasMovedIsEmpty) {
  tidemark::PrefetchLoader loader(read_bytes, on_the_host());
  auto batch = loader.next();
  const tidemark::DeviceBatch moved = *std::move(batch);
  EXPECT_EQ(moved.size(), 2U);
  EXPECT_EQ(batch->size(), 0U);  // NOLINT: as documented
  EXPECT_EQ((*batch)[0].data, nullptr);
  EXPECT_EQ(batch->number(), 0U);
}

TEST(PrefetchLoader, RejectsImpossibleSizes) {
  for (const std::size_t bytes : {~std::size_t{0}, std::size_t{1} << 62, (std::size_t{1} << 48) + 1}) {
    tidemark::PrefetchLoader loader(
        [&](std::size_t) {
          return std::optional(tidemark::HostBatch{{{"", bytes, tidemark::Conversion{}}}, nullptr});
        },
        on_the_host());
    EXPECT_THROW((void)loader.next(), tidemark::Error) << bytes;
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PrefetchLoader, ThreadsThatCannotBeStarted) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  constexpr std::size_t kForSome = std::size_t{100} << 20;
  const rlimit few{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + kForSome, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
  auto settings = on_the_host();
  settings.reading_threads = 1000;
  EXPECT_THROW(tidemark::PrefetchLoader(read_bytes, settings), tidemark::Error);
  ::setrlimit(RLIMIT_AS, &before);
  settings.reading_threads = 1'000'000'000;
  EXPECT_THROW(tidemark::PrefetchLoader(read_bytes, settings), tidemark::Error);
}
#endif

// With a GPU it works, without one it fails with the reason.
TEST(PrefetchLoader, WorksOrFailsWithAReason) {
  try {
    tidemark::PrefetchLoader loader(read_bytes);
    while (const auto batch = loader.next()) EXPECT_EQ((*batch)[1].bytes, 4 * (batch->number() + 1));
    EXPECT_EQ(loader.statistics().copied_bytes, 2U * 55U);
  } catch (const tidemark::Error& error) {
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("CUDA driver"));
  }
}

}  // namespace
