#include "collect/process/native/walk_memo.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "capture.h"
#include "guarded_stack.h"
#include "shapes.h"

namespace tidemark::process {
namespace {

constexpr std::size_t kCapacity = 512;

std::uint64_t hash_of(const std::array<std::uintptr_t, kCapacity>& pcs, std::size_t count) {
  std::uint64_t hash = 14695981039346656037U;
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ pcs[i]) * 1099511628211U;
  return hash;
}

/// A memo that is queried before each walk and must agree with it.
struct CheckedMemo {
  std::unique_ptr<WalkMemo> memo = std::make_unique<WalkMemo>();
  StackBounds bounds = native_stack_bounds();
  std::size_t known = 0;
  std::size_t walks = 0;
  std::size_t kept = 0;

  void check(const NativeContext& context, std::uintptr_t stop_low = 0, std::uintptr_t stop_high = 0,
             std::size_t capacity = kCapacity) {
    const WalkRecord* found = memo->find(context, stop_low);
    std::array<std::uintptr_t, kCapacity> pcs;
    bool truncated = false;
    const auto count = native_walk(context, bounds, stop_low, stop_high, pcs.data(), capacity, &truncated);
    ++walks;
    if (found != nullptr) {
      ++known;
      ASSERT_EQ(found->frames, count);
      ASSERT_EQ(found->truncated, truncated);
      ASSERT_EQ(found->hash, hash_of(pcs, count));
      return;
    }
    WalkRecord* record = memo->new_record();
    if (record == nullptr) {
      memo->clear(true);
      record = memo->new_record();
    }
    ASSERT_NE(record, nullptr);
    ASSERT_EQ(native_walk(context, bounds, stop_low, stop_high, pcs.data(), capacity, &truncated, record), count);
    record->hash = hash_of(pcs, count);
    kept += record->complete ? 1u : 0u;
    memo->keep(record);
  }
};

[[gnu::noinline]] void check_here(void* memo) {
  static_cast<CheckedMemo*>(memo)->check(native_caller_context());
}

void visit_shapes(CheckedMemo& memo, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const Shapes& shapes : all_shapes()) {
      for (const Shape* shape = shapes.begin; shape != shapes.end; ++shape) shape->run(check_here, &memo);
    }
  }
}

TEST(WalkMemo, AgreesWithTheWalkThroughFramesOfEveryKind) {
  CheckedMemo memo;
  visit_shapes(memo, 4);
  // All but the first round, and except recursions 200 frames deep that depend on frame pointers: these do not fit.
  const std::size_t each_round = memo.walks / 4;
  EXPECT_EQ(memo.known, 3 * memo.kept);
  EXPECT_GE(memo.kept, each_round * 9 / 10);
}

TEST(WalkMemo, AgreesOnThreadsWithStacksOfTheirOwn) {
  std::array<std::thread, 3> threads;
  for (auto& thread : threads) {
    thread = std::thread([] {
      CheckedMemo memo;
      visit_shapes(memo, 3);
      EXPECT_GT(memo.known, memo.walks / 2);
    });
  }
  for (auto& thread : threads) thread.join();
}

// Two callers with frames at the same addresses: they differ only in one return address.
[[gnu::noinline]] void through_one(CheckedMemo& memo) {
  check_here(&memo);
  __asm__ volatile("");
}
[[gnu::noinline]] void either(CheckedMemo& memo, bool first) {
  // Different code around them, so that compilers do not make one call of the two.
  if (first) {
    __asm__ volatile("nop");
    through_one(memo);
    __asm__ volatile("nop");
  } else {
    __asm__ volatile("nop; nop");
    through_one(memo);
    __asm__ volatile("nop; nop");
  }
}

TEST(WalkMemo, TellsCallersApart) {
  CheckedMemo memo;
  int rounds = 10;
  __asm__ volatile("" : "+r"(rounds));  // unknown: or each of the ten calls could get a return address of its own
  for (int i = 0; i < rounds; ++i) either(memo, i % 2 == 0);
  EXPECT_EQ(memo.kept, 2u);
  EXPECT_EQ(memo.known, 8u);
}

TEST(WalkMemo, TellsStopsApart) {
  CheckedMemo memo;
  const NativeContext context = native_caller_context();
  std::array<std::uintptr_t, kCapacity> pcs;
  bool truncated = false;
  ASSERT_GT(native_walk(context, memo.bounds, 0, 0, pcs.data(), kCapacity, &truncated), 2u);
  for (int i = 0; i < 3; ++i) {
    memo.check(context);
    memo.check(context, pcs[1], pcs[1] + 1);
  }
  EXPECT_EQ(memo.kept, 2u);
  EXPECT_EQ(memo.known, 4u);
}

TEST(WalkMemo, KeepsTruncation) {
  CheckedMemo memo;
  const NativeContext context = native_caller_context();
  for (int i = 0; i < 2; ++i) memo.check(context, 0, 0, 2);
  EXPECT_EQ(memo.known, 1u);
  EXPECT_TRUE(memo.memo->find(context, 0)->truncated);
}

// If any word changes, a cached walk must equal a new walk.
TEST(WalkMemo, HoldsOnlyWhileTheStackIsUnchanged) {
  const GuardedStack stack;
  const auto code = real_addresses();
  StackWords words(stack, code, 11);
  CheckedMemo memo;
  memo.bounds = stack.bounds();
  std::size_t changed = 0;
  for (int round = 0; round < 3000; ++round) {
    words.fill();
    NativeContext context = words.context();
    context.sp = stack.low() + words.below(32) * 8;
    ASSERT_NO_FATAL_FAILURE(memo.check(context));
    for (int change = 0; change < 20; ++change) {
      const std::size_t known = memo.known;
      if (change % 5 == 4) {
        context.fp = words();
      } else {
        stack.data()[words.below(64)] = words();
      }
      ASSERT_NO_FATAL_FAILURE(memo.check(context));
      changed += memo.known == known ? 1u : 0u;
    }
  }
  EXPECT_GT(memo.known, 10000u);
  EXPECT_GT(changed, 5000u);
}

TEST(WalkMemo, ForgetsWhenItIsCleared) {
  CheckedMemo memo;
  const NativeContext context = native_caller_context();
  memo.check(context);
  ASSERT_NE(memo.memo->find(context, 0), nullptr);
  memo.memo->clear(false);
  EXPECT_EQ(memo.memo->find(context, 0), nullptr);
}

TEST(WalkMemo, DoublesUpToItsLimit) {
  const auto memo = std::make_unique<WalkMemo>();
  std::size_t capacity = memo->growth();
  EXPECT_EQ(capacity, 32u * 1024);
  for (; memo->growth() > 0; capacity *= 2) {
    EXPECT_EQ(memo->growth(), capacity);
    memo->clear(true);
  }
  EXPECT_EQ(capacity, 256u * 1024);
  memo->clear(true);
  EXPECT_EQ(memo->growth(), 0u);
}

}  // namespace
}  // namespace tidemark::process
