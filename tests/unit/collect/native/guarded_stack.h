// A stack made by hand, for walks over arbitrary words.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "capture.h"
#include "collect/process/native/unwinder.h"
#include "shapes.h"

namespace tidemark::process {

/// Readable words between two inaccessible pages.
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

/// Return addresses in code with frames of every kind.
inline std::vector<std::uintptr_t> real_addresses() {
  std::vector<std::uintptr_t> result;
  const Visit add = [](void* argument) {
    const Stacks stacks = capture_stacks();
    auto& all = *static_cast<std::vector<std::uintptr_t>*>(argument);
    all.insert(all.end(), stacks.ours.begin(), stacks.ours.end());
  };
  for (const Shapes& shapes : all_shapes()) {
    for (const Shape* shape = shapes.begin; shape != shapes.end; ++shape) shape->run(add, &result);
  }
  return result;
}

/// Plausible words: mostly return addresses, some addresses in the stack or just beside it, some random values.
class StackWords {
 public:
  StackWords(const GuardedStack& stack, const std::vector<std::uintptr_t>& code, std::uint64_t seed)
      : stack_(stack), code_(code), random_(seed) {}

  std::uintptr_t operator()() {
    switch (random_() % 16) {
      case 0:
        return random_();
      case 1:
        return random_() % 4096;
      case 2:
        return stack_.low() + random_() % (stack_.words() * 8 + 64) - 32;  // may be unaligned or just outside
      case 3:
      case 4:
        return place();
      default:
        return code_[random_() % code_.size()];
    }
  }
  NativeContext context() { return {code_[random_() % code_.size()], place(), (*this)()}; }
  std::uintptr_t place() { return stack_.low() + random_() % stack_.words() * 8; }
  void fill() {
    for (std::size_t i = 0; i < stack_.words(); ++i) stack_.data()[i] = (*this)();
  }
  std::size_t below(std::size_t limit) { return random_() % limit; }

 private:
  const GuardedStack& stack_;
  const std::vector<std::uintptr_t>& code_;
  std::mt19937_64 random_;
};

}  // namespace tidemark::process
