#include "collect/process/filtered.h"

#include <atomic>

#include "collect/ring/seccomp.h"

namespace tidemark::process {
namespace {

std::uint32_t expected_filters = 0;
constinit std::atomic<bool> more_filters{false};  // filters are permanent, also in forked children

}  // namespace

void set_expected_filters(std::uint32_t count) noexcept {
  expected_filters = count;
}

bool filtered() noexcept {
  if (more_filters.load(std::memory_order_relaxed)) return true;
  if (ring::seccomp_filters() <= expected_filters) return false;
  more_filters.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace tidemark::process
