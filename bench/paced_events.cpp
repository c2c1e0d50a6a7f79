// A program with a given number of allocations and frees a second, for a given time, to load recorders and readers.
//
//   tidemark run -o paced.tide --stacks none -- paced_events 1000000 60
//   tidemark run -o paced.tide --stacks none -- paced_events 500000 60 1073741824
//
// 10,000 blocks are alive at a time; the oldest is freed for each allocation. With a third argument, this many more
// bytes are allocated each second and stay, so that the allocated bytes shown by a monitor identify the second
// (bench/monitor_lag.py), and the bytes allocated before the first second are printed with its time (CLOCK_MONOTONIC,
// seconds). Prints the number of events at the end.
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace c10 {
struct Device {
  std::int8_t type;
  std::int8_t index;
};
void reportMemoryUsageToProfiler(void* address, std::int64_t size, std::size_t allocated, std::size_t reserved,
                                 Device device);
}  // namespace c10

namespace {

constexpr std::uint64_t kBlocks = 10'000;
constexpr std::uint64_t kBatchesPerSecond = 1000;
constexpr c10::Device kGpu{1, 0};
constexpr std::uint64_t kFirstKeptAddress = 0x7e00'0000'0000;

std::int64_t size_of(std::uint64_t number) {
  return static_cast<std::int64_t>(512 * (1 + number * 7919 % 4096));
}
void* address_of(std::uint64_t number) {
  return reinterpret_cast<void*>(0x7f00'0000'0000U + (number % (2 * kBlocks)) * 0x40'0000U);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 4) return 2;
  const std::uint64_t pairs_per_batch = std::strtoull(arguments[1], nullptr, 10) / kBatchesPerSecond / 2;
  const std::uint64_t batches = std::strtoull(arguments[2], nullptr, 10) * kBatchesPerSecond;
  const std::uint64_t kept_per_batch = count == 4 ? std::strtoull(arguments[3], nullptr, 10) / kBatchesPerSecond : 0;
  std::uint64_t number = 0;
  std::uint64_t events = 0;
  std::size_t allocated = 0;
  const auto change = [&](void* address, std::int64_t size) {
    allocated += static_cast<std::size_t>(size);
    c10::reportMemoryUsageToProfiler(address, size, allocated, std::size_t{1} << 40, kGpu);
    ++events;
  };
  const auto report = [&](std::uint64_t block, bool allocates) {
    change(address_of(block), allocates ? size_of(block) : -size_of(block));
  };
  for (; number < kBlocks; ++number) report(number, true);
  timespec next{};
  ::clock_gettime(CLOCK_MONOTONIC, &next);
  if (kept_per_batch != 0) {
    std::printf("%zu bytes at %lld.%09ld\n", allocated, static_cast<long long>(next.tv_sec), next.tv_nsec);
    std::fflush(stdout);
  }
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    if (kept_per_batch != 0) {
      change(reinterpret_cast<void*>(kFirstKeptAddress + batch * kept_per_batch),
             static_cast<std::int64_t>(kept_per_batch));
    }
    for (std::uint64_t pair = 0; pair < pairs_per_batch; ++pair, ++number) {
      report(number, true);
      report(number - kBlocks, false);
    }
    next.tv_nsec += 1'000'000'000 / static_cast<long>(kBatchesPerSecond);
    if (next.tv_nsec >= 1'000'000'000) {
      next.tv_nsec -= 1'000'000'000;
      ++next.tv_sec;
    }
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
  }
  std::printf("%llu events\n", static_cast<unsigned long long>(events));
  return 0;
}
