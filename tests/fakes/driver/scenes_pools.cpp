// Scenes of stream-ordered pools.
#include <random>
#include <thread>
#include <vector>

#include "scenes.h"

namespace fakes {
namespace {

MemoryPool create_pool(const Location& location) {
  PoolDescription description{};
  description.beginning = {1, 0, location};
  MemoryPool pool = nullptr;
  DRIVER(cuMemPoolCreate)(&pool, &description);
  return pool;
}

}  // namespace

int pools() {
  start();
  std::vector<DevicePointer> blocks(6);
  for (DevicePointer& block : blocks) DRIVER(cuMemAllocAsync)(&block, 12 * kMiB, nullptr);
  for (std::size_t at = 0; at < 3; ++at) DRIVER(cuMemFreeAsync)(blocks[at], nullptr);
  DRIVER(cuStreamSynchronize)(nullptr);
  free_block(blocks[4]);  // allowed for memory of pools too; the pools release unneeded memory at once
  DRIVER(cuCtxSynchronize)();

  MemoryPool pool = create_pool({tidemark::process::cuda::kLocationDevice, 0});
  std::uint64_t threshold = ~std::uint64_t{0};
  DRIVER(cuMemPoolSetAttribute)(pool, kPoolReleaseThreshold, &threshold);
  DevicePointer kept[2] = {};
  DRIVER(cuMemAllocFromPoolAsync)(&kept[0], 50 * kMiB, pool, nullptr);
  DRIVER(cuMemAllocFromPoolAsync_ptsz)(&kept[1], 70 * kMiB, pool, nullptr);
  DRIVER(cuMemFreeAsync)(kept[0], nullptr);
  DRIVER(cuEventSynchronize)(nullptr);  // the threshold keeps all of it
  DRIVER(cuMemPoolTrimTo)(pool, 100 * kMiB);
  DRIVER(cuMemFreeAsync_ptsz)(kept[1], nullptr);
  DRIVER(cuStreamSynchronize_ptsz)(nullptr);
  DRIVER(cuMemPoolTrimTo)(pool, 10 * kMiB);
  DRIVER(cuMemPoolDestroy)(pool);

  DRIVER(cuMemAllocAsync_ptsz)(&blocks[0], 100 * kMiB, nullptr);
  const DevicePointer block = allocate(kMiB);
  DRIVER(cuMemFreeAsync)(block, nullptr);  // allowed for memory of cuMemAlloc too
  DRIVER(cuStreamSynchronize)(nullptr);
  return 0;
}

/// Pools of a device that is not the current one, and of the host.
int pools_elsewhere() {
  start(0);
  MemoryPool other = create_pool({tidemark::process::cuda::kLocationDevice, 1});
  MemoryPool host_pool = create_pool({kLocationHost, 0});
  DevicePointer block = 0;
  DRIVER(cuMemAllocFromPoolAsync)(&block, 10 * kMiB, other, nullptr);
  DRIVER(cuMemAllocFromPoolAsync)(&block, 40 * kMiB, host_pool, nullptr);
  DRIVER(cuMemFreeAsync)(block, nullptr);
  DRIVER(cuMemPoolDestroy)(host_pool);
  DRIVER(cuMemAllocAsync)(&block, 70 * kMiB, nullptr);
  return 0;
}

/// One pool after the other; the memory of each is released only with the pool.
int many_pools() {
  start();
  for (int count = 0; count < 300; ++count) {
    MemoryPool pool = create_pool({tidemark::process::cuda::kLocationDevice, 0});
    std::uint64_t threshold = ~std::uint64_t{0};
    DRIVER(cuMemPoolSetAttribute)(pool, kPoolReleaseThreshold, &threshold);
    DevicePointer block = 0;
    DRIVER(cuMemAllocFromPoolAsync)(&block, kMiB, pool, nullptr);
    DRIVER(cuMemFreeAsync)(block, nullptr);
    if (count % 2 == 0) DRIVER(cuStreamSynchronize)(nullptr);
    DRIVER(cuMemPoolDestroy)(pool);
  }
  return 0;
}

/// The same pool and mapped memory, used by all at once.
int pool_threads() {
  start();
  std::vector<std::thread> workers;
  for (unsigned seed = 0; seed < 4; ++seed) {
    workers.emplace_back([seed] {
      use_device(0);
      std::mt19937 random(seed);
      const AllocationProperties properties = on_device(0);
      for (int step = 0; step < 300; ++step) {
        DevicePointer blocks[4] = {};
        for (DevicePointer& block : blocks) DRIVER(cuMemAllocAsync)(&block, random() % (20 * kMiB) + 1, nullptr);
        AllocationHandle handle = 0;
        DevicePointer mapped = 0;
        DRIVER(cuMemAddressReserve)(&mapped, 2 * kMiB, 0, 0, 0);
        DRIVER(cuMemCreate)(&handle, 2 * kMiB, &properties, 0);
        DRIVER(cuMemMap)(mapped, 2 * kMiB, 0, handle, 0);
        DRIVER(cuMemRelease)(handle);
        for (const DevicePointer block : blocks) DRIVER(cuMemFreeAsync)(block, nullptr);
        DRIVER(cuStreamSynchronize)(nullptr);
        if (step == 0) continue;  // the first page of each thread stays
        DRIVER(cuMemUnmap)(mapped, 2 * kMiB);
        DRIVER(cuMemAddressFree)(mapped, 2 * kMiB);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  DevicePointer last = 0;
  DRIVER(cuMemAllocAsync)(&last, 40 * kMiB, nullptr);
  return 0;
}

/// Each thread makes and destroys pools, while the others' synchronizations query the sizes of all pools.
int pools_come_and_go() {
  start();
  std::vector<std::thread> workers;
  for (int number = 0; number < 4; ++number) {
    workers.emplace_back([] {
      use_device(0);
      for (int count = 0; count < 500; ++count) {
        MemoryPool pool = create_pool({tidemark::process::cuda::kLocationDevice, 0});
        DevicePointer block = 0;
        DRIVER(cuMemAllocFromPoolAsync)(&block, kMiB, pool, nullptr);
        DRIVER(cuMemFreeAsync)(block, nullptr);
        if (count % 4 != 0) DRIVER(cuStreamSynchronize)(nullptr);
        DRIVER(cuMemPoolDestroy)(pool);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  allocate(3 * kMiB);
  return 0;
}

}  // namespace fakes
