// The stack of a place in a test, taken by the unwinder and by glibc's backtrace() (libgcc's unwinder).
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark::process {

struct Stacks {
  std::vector<std::uintptr_t> ours;
  std::vector<std::uintptr_t> theirs;  ///< from the same frame on; an interrupted place as its own address
  bool truncated = false;
};

/// Both stacks of the caller, which is their first frame.
Stacks capture_stacks();

/// ours, with places that a signal interrupted as backtrace() reports them: their address rather than that + 1. They
/// follow the C library's signal trampoline.
std::vector<std::uintptr_t> as_backtrace(const Stacks& stacks);

}  // namespace tidemark::process
