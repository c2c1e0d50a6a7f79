#include <gtest/gtest.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "collect/process/native/unwinder.h"

namespace tidemark::process {
namespace {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// The kernel's mapping at an address.
Mapping mapping_at(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    if (std::sscanf(line.c_str(), "%lx-%lx", &mapping.begin, &mapping.end) != 2) continue;
    if (address >= mapping.begin && address < mapping.end) return mapping;
  }
  return {};
}

void expect_bounds_of_this_thread() {
  const int local = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&local);
  const StackBounds bounds = native_stack_bounds();
  const Mapping mapping = mapping_at(here);
  EXPECT_LE(bounds.low, here);
  EXPECT_GT(bounds.high, here);
  EXPECT_LE(bounds.high, mapping.end);
  EXPECT_GT(bounds.high, mapping.end - (1u << 20));  // all except environment and thread descriptor
}

TEST(StackBounds, OfTheMainThread) {
  expect_bounds_of_this_thread();
}

TEST(StackBounds, OfAnotherThread) {
  std::thread(expect_bounds_of_this_thread).join();
}

TEST(StackBounds, AfterAForkFromAnotherThread) {
  std::thread([] {
    const pid_t child = fork();
    if (child == 0) {
      // Its only thread: the process's main one now, on the stack of the forking thread.
      expect_bounds_of_this_thread();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }).join();
}

ucontext_t main_context;
StackBounds in_coroutine = {1, 1};

void coroutine() {
  in_coroutine = native_stack_bounds();
}

TEST(StackBounds, AreUnknownInACoroutine) {
  std::vector<char> stack(1 << 18);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack.data();
  context.uc_stack.ss_size = stack.size();
  context.uc_link = &main_context;
  makecontext(&context, coroutine, 0);
  swapcontext(&main_context, &context);
  EXPECT_EQ(in_coroutine.high, 0u);
}

}  // namespace
}  // namespace tidemark::process
