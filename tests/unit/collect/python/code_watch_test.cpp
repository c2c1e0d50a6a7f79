#include "collect/process/python/code_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "collect/process/python/layout.h"

namespace tidemark::process {
namespace {

std::atomic<int> deallocated{0};
void count_dealloc(void*) {
  ++deallocated;
}

// Replaces PyCode_Type: only the slot of the deallocator matters. Addresses of "code objects" are just numbers here.
struct FakeType {
  alignas(8) std::byte bytes[408] = {};

  FakeType() {
    void (*dealloc)(void*) = count_dealloc;
    std::memcpy(bytes + kTypeDealloc, &dealloc, sizeof dealloc);
    watch_code_deaths(reinterpret_cast<std::uintptr_t>(bytes));
  }

  void kill(std::uintptr_t code) {
    void (*dealloc)(void*) = nullptr;
    std::memcpy(&dealloc, bytes + kTypeDealloc, sizeof dealloc);
    dealloc(reinterpret_cast<void*>(code));
  }
};

FakeType& type() {
  static FakeType only;
  return only;
}

TEST(CodeWatch, OnlyWatchedDeathsCount) {
  const std::uint64_t before = code_generation();
  type().kill(0x7f0000001230);
  EXPECT_EQ(code_generation(), before);
  watch_code(0x7f0000001230);
  watch_code(0x7f0000001230);
  EXPECT_EQ(code_generation(), before);
  type().kill(0x7f0000001240);
  EXPECT_EQ(code_generation(), before);
  type().kill(0x7f0000001230);
  EXPECT_EQ(code_generation(), before + 1);
  type().kill(0x7f0000001230);  // forgotten by then
  EXPECT_EQ(code_generation(), before + 1);
}

TEST(CodeWatch, TheOriginalDeallocatorIsCalled) {
  const int before = deallocated;
  watch_code(0x7f0000005550);
  type().kill(0x7f0000005550);
  type().kill(0x7f0000006660);
  EXPECT_EQ(deallocated, before + 2);
}

// A user that follows the protocol (everything is invalid after a change, and must be watched again) misses no death,
// even if there is not room for all.
TEST(CodeWatch, FullSetMissesNoDeath) {
  constexpr std::uintptr_t kCount = 200000;
  const auto code = [](std::uintptr_t index) { return 0x7e0000000000 + index * 432; };
  for (std::uintptr_t index = 0; index < kCount; ++index) watch_code(code(index));
  std::vector<std::uint64_t> remembered(kCount, code_generation());
  for (std::uintptr_t index = 0; index < kCount; ++index) {
    const std::uint64_t before = code_generation();
    if (remembered[index] != before) {  // invalid by now: watched again
      watch_code(code(index));
      remembered[index] = before;
    }
    type().kill(code(index));
    ASSERT_GT(code_generation(), remembered[index]) << index;
  }
}

TEST(CodeWatch, ThreadsMissNoDeath) {
  std::vector<std::thread> threads;
  std::atomic<int> missed{0};
  for (std::uintptr_t number = 0; number < 4; ++number) {
    threads.emplace_back([number, &missed] {
      for (std::uintptr_t index = 0; index < 50000; ++index) {
        const std::uintptr_t code = 0x7d0000000000 + number * 0x100000000 + index % 1000 * 272;
        const std::uint64_t before = code_generation();
        watch_code(code);
        type().kill(code);
        if (code_generation() == before) ++missed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace tidemark::process
