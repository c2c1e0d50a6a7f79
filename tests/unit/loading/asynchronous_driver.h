// A CUDA driver with streams that are threads: copies happen later, in the order of their stream, as on a device.
// Memory "of the device" is the host's. Kernels are conversions, by name. One at a time in a process.
#pragma once

#include <cstddef>
#include <functional>

#include "inprocess/cuda/cuda_driver.h"

namespace tidemark::test {

class AsynchronousDriver {
 public:
  AsynchronousDriver();
  ~AsynchronousDriver();
  AsynchronousDriver(const AsynchronousDriver&) = delete;
  AsynchronousDriver& operator=(const AsynchronousDriver&) = delete;

  [[nodiscard]] const cuda::Driver& driver() const { return driver_; }
  /// Work of the test, in its place on a stream.
  void launch(cuda::Stream stream, std::function<void()> work);
  [[nodiscard]] cuda::Stream make_stream();
  void synchronize(cuda::Stream stream);

  /// Number of pinned and device allocations, streams, events and modules.
  [[nodiscard]] std::size_t objects() const;
  /// Lets this number of allocations on the device succeed, and then none.
  void allocations_left(std::size_t count);
  /// Lets this number of copies succeed, and then none.
  void copies_left(std::size_t count);

 private:
  cuda::Driver driver_;
};

}  // namespace tidemark::test
