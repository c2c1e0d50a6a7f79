#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>

#include "capture.h"
#include "collect/process/native/unwinder.h"
#include "shapes.h"

namespace tidemark::process {
namespace {

void expect_same_stacks(const char* where) {
  for (const Shapes& shapes : all_shapes()) {
    for (const Shape* shape = shapes.begin; shape != shapes.end; ++shape) {
      Stacks stacks;
      shape->run(capture_into, &stacks);
      EXPECT_GE(stacks.theirs.size(), 4u);
      EXPECT_EQ(stacks.ours, stacks.theirs) << where << ": " << shape->name << " compiled as " << shapes.way;
    }
  }
}

TEST(NativeWalk, AgreesWithBacktraceOnTheMainThread) {
  expect_same_stacks("main thread");
}

TEST(NativeWalk, AgreesWithBacktraceAfterForgetting) {
  native_forget();
  expect_same_stacks("cold");
}

TEST(NativeWalk, AgreesWithBacktraceOnAnotherThread) {
  std::thread(expect_same_stacks, "std::thread").join();
}

TEST(NativeWalk, AgreesWithBacktraceOnAThreadWithAStackOfItsOwn) {
  constexpr std::size_t kSize = 8 << 20;
  void* stack = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(stack, MAP_FAILED);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kSize);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    expect_same_stacks("stack of its own");
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(stack, kSize);
}

TEST(NativeWalk, AgreesWithBacktraceOnManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 5; ++round) {
        native_forget();
        expect_same_stacks("threads at once");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

/// A walk of a given stack that is checked to write no more than it returns.
struct Walk {
  Walk(const NativeContext& context, std::size_t capacity, std::uintptr_t stop_low = 0, std::uintptr_t stop_high = 0) {
    std::array<std::uintptr_t, 512> buffer;
    buffer.fill(~std::uintptr_t{0});
    const auto count =
        native_walk(context, native_stack_bounds(), stop_low, stop_high, buffer.data(), capacity, &truncated);
    for (std::size_t i = count; i < buffer.size(); ++i) EXPECT_EQ(buffer[i], ~std::uintptr_t{0});
    pcs.assign(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
  }

  std::vector<std::uintptr_t> pcs;
  bool truncated = false;
};

/// The first `count` frames.
std::vector<std::uintptr_t> first(const Walk& walk, std::size_t count) {
  return {walk.pcs.begin(), walk.pcs.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// Runs `check` at the bottom of a recursion of 200.
void in_recursion(Visit check) {
  const Shapes shapes = shapes_O2();
  bool ran = false;
  for (const Shape* shape = shapes.begin; shape != shapes.end; ++shape) {
    if (std::string_view(shape->name) != "deep_recursion") continue;
    shape->run(check, nullptr);
    ran = true;
  }
  EXPECT_TRUE(ran);
}

[[gnu::noinline]] void check_capacities(void*) {
  const NativeContext context = native_caller_context();
  const Walk whole(context, 512);
  ASSERT_GT(whole.pcs.size(), 200u);
  EXPECT_FALSE(whole.truncated);
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{30}, whole.pcs.size() - 1}) {
    const Walk cut(context, capacity);
    EXPECT_EQ(cut.pcs, first(whole, capacity));
    EXPECT_TRUE(cut.truncated);
  }
  const Walk exact(context, whole.pcs.size());
  EXPECT_EQ(exact.pcs, whole.pcs);
  EXPECT_FALSE(exact.truncated);
}

TEST(NativeWalk, TruncatesAtTheCapacity) {
  in_recursion(check_capacities);
}

[[gnu::noinline]] void check_stop_range(void*) {
  const NativeContext context = native_caller_context();
  const Walk whole(context, 512);
  const std::size_t inner = whole.pcs.size() - 3;  // outside the recursion, whose frames are equal
  const std::uintptr_t stop = whole.pcs[inner];
  const Walk stopped(context, 512, stop, stop + 1);
  EXPECT_EQ(stopped.pcs, first(whole, inner));
  EXPECT_FALSE(stopped.truncated);
  const Walk at_capacity(context, inner, stop - 1, stop + 1);
  EXPECT_EQ(at_capacity.pcs, first(whole, inner));
  EXPECT_FALSE(at_capacity.truncated);
  EXPECT_EQ(Walk(context, 512, stop + 1, stop + 2).pcs, whole.pcs);
  EXPECT_EQ(Walk(context, 512, context.pc, context.pc + 1).pcs.size(), 0u);
}

TEST(NativeWalk, StopsBeforeTheStopRange) {
  in_recursion(check_stop_range);
}

}  // namespace
}  // namespace tidemark::process
