#include "batching/free_memory.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/thread_without_signals.h"

namespace tidemark {

Result<FreeMemory> free_memory(const cuda::Driver& driver, cuda::Context context) {
  const cuda::CurrentContext current(driver, context);
  std::size_t free = 0;
  std::size_t total = 0;
  if (const cuda::Status status = driver.memory_info(&free, &total); status != cuda::kSuccess) {
    return driver.error("cuMemGetInfo", status);
  }
  return FreeMemory{free, total};
}

LowestFreeMemory::LowestFreeMemory(const cuda::Driver& driver, cuda::Context context)
    : driver_(driver), context_(context), thread_(thread_without_signals([this] { run(); })) {}

LowestFreeMemory::~LowestFreeMemory() {
  end();
}

void LowestFreeMemory::end() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_one();
  thread_.join();
}

std::optional<std::uint64_t> LowestFreeMemory::stop() {
  end();
  ask();
  return lowest_;
}

void LowestFreeMemory::ask() {
  const auto memory = free_memory(driver_, context_);
  if (memory) lowest_ = std::min(lowest_.value_or(memory->free_bytes), memory->free_bytes);
}

void LowestFreeMemory::run() {
  std::unique_lock lock(mutex_);
  do {
    ask();
  } while (!ending_.wait_for(lock, std::chrono::milliseconds(1), [this] { return ends_; }));
}

}  // namespace tidemark
