#include "collect/process/quiet.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>

namespace tidemark::process {
namespace {

constexpr long kPauseNs = 100'000;
constexpr int kPauses = 10'000;

void pause() noexcept {
  const timespec duration = {0, kPauseNs};
  ::nanosleep(&duration, nullptr);
}

// A thread marks its lane busy and then looks whether the connection goes on; we end the connection and then look
// whether the lane is busy. (Likewise with the gate and the slow path.) The kernel has every thread pass a barrier in
// between, so that one of the two sees the other without a barrier in each event. Kernels without the call get time
// instead: what a processor has stored becomes visible within nanoseconds.
void have_all_threads_pass_a_barrier() noexcept {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) != 0 ||
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) != 0) {
    for (int count = 0; count < 10; ++count) pause();
  }
}

bool somebody_is_busy(const ring::Shared* shared) noexcept {
  for (std::size_t index = 0; index < ring::kLaneCount; ++index) {
    if (shared->lanes[index].busy.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

}  // namespace

bool wait_until_quiet(ring::Shared* shared, const std::atomic<std::uint32_t>& entering) noexcept {
  have_all_threads_pass_a_barrier();
  for (int count = 0; entering.load(std::memory_order_acquire) != 0; ++count) {
    if (count == kPauses) return false;
    pause();
  }
  for (std::size_t index = 0; index < ring::kLaneCount; ++index) {
    shared->lanes[index].connection.store(0, std::memory_order_relaxed);
  }
  have_all_threads_pass_a_barrier();
  for (int count = 0; somebody_is_busy(shared); ++count) {
    if (count == kPauses) return false;
    pause();
  }
  return true;
}

}  // namespace tidemark::process
