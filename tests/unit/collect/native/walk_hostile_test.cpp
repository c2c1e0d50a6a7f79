#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "capture.h"
#include "collect/process/native/unwinder.h"
#include "shapes.h"

namespace tidemark::process {
namespace {

/// Readable words between two pages that nobody may touch.
class GuardedStack {
 public:
  GuardedStack() : page_(static_cast<std::size_t>(getpagesize())) {
    map_ = static_cast<char*>(mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_ + page_, page_, PROT_READ | PROT_WRITE);
  }
  ~GuardedStack() { munmap(map_, 3 * page_); }
  GuardedStack(const GuardedStack&) = delete;
  GuardedStack& operator=(const GuardedStack&) = delete;

  [[nodiscard]] StackBounds bounds() const { return {low(), low() + page_}; }
  [[nodiscard]] std::uintptr_t low() const { return reinterpret_cast<std::uintptr_t>(map_ + page_); }
  [[nodiscard]] std::size_t words() const { return page_ / sizeof(std::uintptr_t); }
  [[nodiscard]] std::uintptr_t* data() const { return reinterpret_cast<std::uintptr_t*>(map_ + page_); }

 private:
  std::size_t page_;
  char* map_;
};

void add_addresses(void* argument) {
  const Stacks stacks = capture_stacks();
  auto& all = *static_cast<std::vector<std::uintptr_t>*>(argument);
  all.insert(all.end(), stacks.ours.begin(), stacks.ours.end());
}

/// Return addresses of code whose frames are of every kind.
std::vector<std::uintptr_t> real_addresses() {
  std::vector<std::uintptr_t> result;
  for (const Shapes& shapes : all_shapes()) {
    for (const Shape* shape = shapes.begin; shape != shapes.end; ++shape) shape->run(add_addresses, &result);
  }
  return result;
}

TEST(NativeWalkHostile, NoStackMakesItReadElsewhere) {
  const GuardedStack stack;
  const auto code = real_addresses();
  std::mt19937_64 random(7);
  const auto word = [&]() -> std::uintptr_t {
    switch (random() % 16) {
      case 0:
        return random();
      case 1:
        return random() % 4096;
      case 2:
        return stack.low() + random() % (stack.words() * 8 + 64) - 32;  // may be unaligned or just outside
      case 3:
      case 4:
        return stack.low() + random() % stack.words() * 8;
      default:
        return code[random() % code.size()];
    }
  };
  std::array<std::uintptr_t, 600> pcs;
  std::size_t deep = 0;
  for (int round = 0; round < 20000; ++round) {
    for (std::size_t i = 0; i < stack.words(); ++i) stack.data()[i] = word();
    const NativeContext context = {code[random() % code.size()], stack.low() + random() % stack.words() * 8, word()};
    bool truncated = false;
    const auto count = native_walk(context, stack.bounds(), 0, 0, pcs.data(), pcs.size(), &truncated);
    ASSERT_GE(count, 1u);
    // Each frame takes at least a word of stack.
    ASSERT_LE(count, (stack.bounds().high - context.sp) / 8 + 1);
    deep += count > 3 ? 1u : 0u;
  }
  EXPECT_GT(deep, 500u);  // or this would test little but the first step
}

TEST(NativeWalkHostile, StackPointersOutsideTheBoundsGiveTheFirstFrameOnly) {
  const GuardedStack stack;
  const std::uintptr_t pc = real_addresses().front();
  std::array<std::uintptr_t, 8> pcs;
  bool truncated = false;
  for (const std::uintptr_t sp : {std::uintptr_t{0}, stack.low() - 8, stack.bounds().high, stack.bounds().high + 8,
                                  stack.low() + 4, ~std::uintptr_t{7}}) {
    EXPECT_EQ(native_walk({pc, sp, sp}, stack.bounds(), 0, 0, pcs.data(), pcs.size(), &truncated), 1u) << sp;
    EXPECT_EQ(pcs[0], pc);
  }
  EXPECT_EQ(native_walk({pc, stack.low(), 0}, StackBounds{}, 0, 0, pcs.data(), pcs.size(), &truncated), 1u);
  EXPECT_EQ(native_walk({pc, stack.low(), stack.low()}, {stack.low(), stack.low() + 7}, 0, 0, pcs.data(), pcs.size(),
                        &truncated),
            1u);
}

/// Machine code that no module and no unwind table knows.
class GeneratedCode {
 public:
  using Function = void (*)(void (*)(void*), void*);

  explicit GeneratedCode(std::initializer_list<unsigned char> code) {
    map_ = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(map_, code.begin(), code.size());
    mprotect(map_, 4096, PROT_READ | PROT_EXEC);
  }
  ~GeneratedCode() { munmap(map_, 4096); }
  GeneratedCode(const GeneratedCode&) = delete;
  GeneratedCode& operator=(const GeneratedCode&) = delete;

  [[nodiscard]] Function function() const { return reinterpret_cast<Function>(map_); }
  [[nodiscard]] std::uintptr_t start() const { return reinterpret_cast<std::uintptr_t>(map_); }

 private:
  void* map_;
};

[[gnu::noinline]] void capture_through(void* argument) {
  *static_cast<Stacks*>(argument) = capture_stacks();
}

TEST(NativeWalkGenerated, FollowsFramePointersOfGeneratedCode) {
  // push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; pop %rbp; ret
  const GeneratedCode code{0x55, 0x48, 0x89, 0xE5, 0x48, 0x89, 0xF8, 0x48, 0x89, 0xF7, 0xFF, 0xD0, 0x5D, 0xC3};
  Stacks through;
  code.function()(capture_through, &through);
  const Stacks here = capture_stacks();
  ASSERT_GT(through.ours.size(), 3u);
  EXPECT_EQ(through.ours[1], code.start() + 12);
  // Behind it: this function, at another call, and its callers.
  EXPECT_EQ(std::vector<std::uintptr_t>(through.ours.begin() + 3, through.ours.end()),
            std::vector<std::uintptr_t>(here.theirs.begin() + 1, here.theirs.end()));
}

TEST(NativeWalkGenerated, EndsAtGeneratedCodeWithoutFramePointers) {
  // push %rbp; mov $0x1234,%ebp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; pop %rbp; ret
  const GeneratedCode code{0x55, 0xBD, 0x34, 0x12, 0, 0, 0x48, 0x89, 0xF8, 0x48, 0x89, 0xF7, 0xFF, 0xD0, 0x5D, 0xC3};
  Stacks through;
  code.function()(capture_through, &through);
  ASSERT_EQ(through.ours.size(), 2u);
  EXPECT_EQ(through.ours[1], code.start() + 14);
}

}  // namespace
}  // namespace tidemark::process
