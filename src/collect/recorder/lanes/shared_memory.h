// The memory that a recorded process hands over, with its lanes.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "collect/ring/layout.h"

namespace tidemark {

/// Maps the memory that a process handed over; unmaps it when destroyed.
class SharedMemory {
 public:
  /// Takes ownership of `fd`. Fails unless it is a sealed memfd of the right size with a layout of this version.
  static Result<std::unique_ptr<SharedMemory>> map(ScopedFd fd);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] ring::Shared* get() const { return shared_; }

 private:
  explicit SharedMemory(ring::Shared* shared) : shared_(shared) {}
  ring::Shared* shared_;
};

}  // namespace tidemark
