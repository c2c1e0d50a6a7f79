#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>

#include "capture.h"
#include "guarded_stack.h"

namespace tidemark::process {
namespace {

TEST(NativeWalkHostile, NeverReadsOutsideTheStack) {
  const GuardedStack stack;
  const auto code = real_addresses();
  StackWords words(stack, code, 7);
  std::array<std::uintptr_t, 600> pcs;
  std::size_t deep = 0;
  for (int round = 0; round < 20000; ++round) {
    words.fill();
    const NativeContext context = words.context();
    bool truncated = false;
    const auto count = native_walk(context, stack.bounds(), 0, 0, pcs.data(), pcs.size(), &truncated);
    ASSERT_GE(count, 1u);
    // Each frame takes at least a word of stack.
    ASSERT_LE(count, (stack.bounds().high - context.sp) / 8 + 1);
    deep += count > 3 ? 1u : 0u;
  }
  EXPECT_GT(deep, 500u);  // otherwise this would test little more than the first step
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

/// Machine code without a module or an unwind table.
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
  // After it: this function, at another call, and its callers.
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
