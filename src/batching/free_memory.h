// The minimum of a device's free memory over a time, from a thread that polls the driver.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"

namespace tidemark {

struct FreeMemory {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// Free memory of the context's device. Thread-safe.
[[nodiscard]] Result<FreeMemory> free_memory(const cuda::Driver& driver, cuda::Context context);

/// Polls from its construction on, every millisecond.
class LowestFreeMemory {
 public:
  LowestFreeMemory(const cuda::Driver& driver, cuda::Context context);
  ~LowestFreeMemory();
  LowestFreeMemory(const LowestFreeMemory&) = delete;
  LowestFreeMemory& operator=(const LowestFreeMemory&) = delete;

  /// Stops, after a last reading. nullopt if the driver has not reported it.
  [[nodiscard]] std::optional<std::uint64_t> stop();

 private:
  void end() noexcept;
  void ask();
  void run();

  const cuda::Driver& driver_;
  cuda::Context context_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  std::optional<std::uint64_t> lowest_;  ///< the thread's until it has ended
  std::thread thread_;
};

}  // namespace tidemark
