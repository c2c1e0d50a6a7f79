// The stack of a place in a test, taken by the unwinder and by glibc's backtrace() (libgcc's unwinder).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tidemark::process {

/// A list of addresses of bounded length: signal handlers fill it, so it allocates nothing.
class Addresses {
 public:
  static constexpr std::size_t kCapacity = 512;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::uintptr_t* begin() const { return items_.data(); }
  [[nodiscard]] const std::uintptr_t* end() const { return items_.data() + size_; }
  std::uintptr_t& operator[](std::size_t index) { return items_[index]; }
  const std::uintptr_t& operator[](std::size_t index) const { return items_[index]; }
  void push_back(std::uintptr_t address) { items_[size_++] = address; }

  friend bool operator==(const Addresses& a, const Addresses& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::uintptr_t, kCapacity> items_;
  std::size_t size_ = 0;
};

struct Stacks {
  Addresses ours;
  Addresses theirs;  ///< from the same frame on; an interrupted place as its own address
};

/// Both stacks of the caller, which is their first frame. Before it is called in a signal handler, the thread must have
/// called it elsewhere: the first call queries the bounds of the stack, and backtrace() loads its library.
Stacks capture_stacks();

/// capture_stacks() with the signature of a callback: `argument` is the `Stacks*` for the result.
void capture_into(void* argument);

/// ours, with places interrupted by a signal in backtrace()'s form: their address rather than that + 1. They follow the
/// C library's signal trampoline.
Addresses as_backtrace(const Stacks& stacks);

}  // namespace tidemark::process
