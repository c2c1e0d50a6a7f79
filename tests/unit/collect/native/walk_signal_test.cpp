#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <atomic>
#include <cstring>

#include "capture.h"
#include "collect/process/native/unwinder.h"
#include "shapes.h"

namespace tidemark::process {
namespace {

Stacks from_handler;

void capture_in_handler(int) {
  const int saved = errno;
  from_handler = capture_stacks();
  errno = saved;
}

class Handler {
 public:
  Handler(int signal, void (*handler)(int), int flags) : signal_(signal) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(signal, &action, &before_);
  }
  ~Handler() { sigaction(signal_, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  int signal_;
  struct sigaction before_ = {};
};

TEST(NativeWalkSignal, GoesThroughAHandlerOnTheSameStack) {
  capture_stacks();
  const Handler handler(SIGUSR1, capture_in_handler, 0);
  raise(SIGUSR1);
  EXPECT_GE(from_handler.ours.size(), 6u);
  EXPECT_EQ(as_backtrace(from_handler), from_handler.theirs);
  EXPECT_NE(from_handler.ours, from_handler.theirs);  // the interrupted place: address + 1
}

TEST(NativeWalkSignal, OnAnAlternateStackGivesTheHandlerOnly) {
  capture_stacks();
  constexpr std::size_t kSize = 1 << 20;
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kSize;
  stack_t before = {};
  ASSERT_EQ(sigaltstack(&stack, &before), 0);
  {
    const Handler handler(SIGUSR1, capture_in_handler, SA_ONSTACK);
    raise(SIGUSR1);
  }
  ASSERT_EQ(from_handler.ours.size(), 1u);
  EXPECT_EQ(from_handler.ours[0], from_handler.theirs[0]);
  sigaltstack(&before, nullptr);
  munmap(memory, kSize);
}

std::atomic<int> ticks = 0;
std::atomic<int> differing = 0;
std::atomic<int> shorter = 0;

// Any instruction may be interrupted: prologues, PLT stubs, leaf functions.
void compare_in_handler(int) {
  const int saved = errno;
  const Stacks stacks = capture_stacks();
  const auto ours = as_backtrace(stacks);
  errno = saved;
  ++ticks;
  if (ours == stacks.theirs) return;
  const bool prefix = ours.size() < stacks.theirs.size() && std::equal(ours.begin(), ours.end(), stacks.theirs.begin());
  ++(prefix ? shorter : differing);
}

void nothing(void* argument) {
  *static_cast<volatile int*>(argument) = 1;
}

TEST(NativeWalkSignal, AgreesWithBacktraceAtInterruptedPlaces) {
  capture_stacks();
  const auto ways = all_shapes();
  const Handler handler(SIGALRM, compare_in_handler, SA_RESTART);
  ticks = differing = shorter = 0;
  int sink = 0;
  for (int round = 0; round < 1000; ++round) {
    // One shot each round, not an interval: if the handler takes longer than the interval (sanitizers), only the
    // handler would ever run.
    const itimerval once = {{0, 0}, {0, 50 + round * 7 % 300}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &once, nullptr), 0);
    while (ticks == round) {
      // No exceptions: libgcc may not be entered again from a handler that interrupted it.
      for (const Shapes& shapes : ways) {
        for (const Shape* shape = shapes.begin; shape != shapes.end; ++shape) {
          if (std::strstr(shape->name, "catch") == nullptr && std::strstr(shape->name, "exception") == nullptr) {
            shape->run(nothing, &sink);
          }
        }
      }
    }
  }
  EXPECT_EQ(differing, 0);
  // In a prologue that realigns the stack the CFA is in r10 for some instructions: the walk ends there.
  EXPECT_LE(shorter, ticks / 20);
}

}  // namespace
}  // namespace tidemark::process
