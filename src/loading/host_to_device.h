// Copies arrays from pageable memory to a device through a ring of pinned chunks: while the device copies one chunk,
// threads fill the next ones. The pinned memory is bounded and does not depend on the size of a batch.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"

namespace tidemark {

/// An array that is to be copied to a device.
struct HostArrayCopy {
  const std::byte* from = nullptr;
  cuda::DevicePointer to = 0;
  std::size_t bytes = 0;
  bool pinned = false;  ///< the device can read it directly
};

/// The arrays copied with one chunk; a pinned array is alone and needs none.
struct ChunkLoad {
  std::vector<HostArrayCopy> copies;
  bool pinned = false;
};

/// Arrays of no bytes are left out. `chunk_bytes` > 0.
[[nodiscard]] std::vector<ChunkLoad> cut_into_loads(std::span<const HostArrayCopy> copies, std::size_t chunk_bytes);

struct HostToDeviceOptions {
  int device = 0;                        ///< as CUDA numbers them in this process
  std::size_t chunk_bytes = 4ull << 20;  ///< of pinned memory
  std::size_t chunks = 8;                ///< at least 2
  std::size_t threads = 0;               ///< number of threads that fill chunks, including the caller of copy(); 0:
                                         ///< filling_threads()
};

/// Default number of threads that fill chunks: one for four processors that the process may use, at most 4.
[[nodiscard]] std::size_t filling_threads(std::size_t processors);

class HostToDevice;

/// Deletes the object, except in a forked child, which has neither the threads nor the device: there it is leaked.
struct DeleteUnlessForked {
  void operator()(HostToDevice* copier) const;
};
using HostToDevicePointer = std::unique_ptr<HostToDevice, DeleteUnlessForked>;

/// One stream of copies to one device. Any thread may call; copies of several callers follow each other.
class HostToDevice {
 public:
  /// Allocates the pinned memory and a stream, and retains the device's primary context, which PyTorch and the CUDA
  /// runtime use too.
  [[nodiscard]] static Result<HostToDevicePointer> create(const cuda::Driver& driver,
                                                          const HostToDeviceOptions& options);
  /// Waits for the copies that were begun.
  ~HostToDevice();
  HostToDevice(const HostToDevice&) = delete;
  HostToDevice& operator=(const HostToDevice&) = delete;

  /// Starts the copies on stream(). When it returns, pageable sources may be changed or freed; pinned ones must be kept
  /// until the stream has completed the copies. After an error, some copies may have been made.
  [[nodiscard]] Result<void> copy(std::span<const HostArrayCopy> copies);

  /// Whether this is a forked child, which has neither its threads nor the device.
  [[nodiscard]] bool was_forked() const;
  [[nodiscard]] const cuda::Driver& driver() const { return driver_; }
  [[nodiscard]] cuda::Stream stream() const { return stream_; }
  [[nodiscard]] cuda::Context context() const { return context_->get(); }
  [[nodiscard]] std::size_t pinned_bytes() const { return options_.chunk_bytes * chunks_.size(); }

 private:
  friend struct DeleteUnlessForked;
  struct Chunk {
    std::mutex filling;
    std::byte* memory = nullptr;
    cuda::Event copied = nullptr;
    bool in_flight = false;  ///< `copied` has been recorded
  };

  HostToDevice(const cuda::Driver& driver, const HostToDeviceOptions& options) : driver_(driver), options_(options) {}
  [[nodiscard]] std::optional<Error> prepare();
  void work();
  void run_loads();
  [[nodiscard]] std::optional<Error> run(const ChunkLoad& load, Chunk& chunk) const;
  void fail(Error error);

  const cuda::Driver& driver_;
  HostToDeviceOptions options_;
  pid_t owner_ = 0;
  std::optional<cuda::PrimaryContext> context_;  ///< once prepared
  cuda::Stream stream_ = nullptr;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::atomic<std::size_t> next_chunk_ = 0;

  std::mutex copying_;  ///< one caller of copy()

  // work of the threads
  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const ChunkLoad> loads_;
  std::atomic<std::size_t> next_load_ = 0;
  std::uint64_t round_ = 0;  ///< of loads_
  std::size_t working_ = 0;  ///< threads that have not finished this round
  bool stopping_ = false;
  std::optional<Error> error_;
  std::vector<std::thread> threads_;
};

}  // namespace tidemark
