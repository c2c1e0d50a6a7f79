// Scenes of one thread: blocks, managed and page-locked memory, physical memory, graphs, libraries.
#include <thread>
#include <vector>

#include "scenes.h"

namespace fakes {
int plain() {
  start();
  plain_work(1, 300);
  DevicePointer rows = 0;
  std::size_t pitch = 0;
  DRIVER(cuMemAllocPitch_v2)(&rows, &pitch, 1000, 64, 4);
  free_block(0);  // as free(nullptr): nothing happens
  return 0;
}

int through_libraries() {
  start();
  const DevicePointer own = allocate(3 * kMiB);
  void* communicator = FUNCTION_OF("libnccl.so.2", fakes_nccl_open)();
  void* workspace = FUNCTION_OF("libcublasLt.so.13", fakes_cublas_open)();
  void* other = FUNCTION_OF("libnccl.so.2", fakes_nccl_open)();
  FUNCTION_OF("libnccl.so.2", fakes_nccl_close)(communicator);
  FUNCTION_OF("libcublasLt.so.13", fakes_cublas_close)(workspace);
  free_block(own);
  return other == nullptr ? 1 : 0;
}

int host() {
  start();
  DevicePointer managed[2] = {};
  DRIVER(cuMemAllocManaged)(&managed[0], 5 * kMiB, 1);
  void* pinned[2] = {};
  DRIVER(cuMemAllocHost_v2)(&pinned[0], kMiB);
  DRIVER(cuMemHostAlloc)(&pinned[1], 2 * kMiB, 0);
  static char own[64 * kKiB];
  DRIVER(cuMemHostRegister_v2)(own, sizeof(own), 0);
  DRIVER(cuMemAllocManaged)(&managed[1], 7 * kMiB, 1);
  free_block(managed[0]);
  DRIVER(cuMemFreeHost)(pinned[0]);
  DRIVER(cuMemHostUnregister)(own);
  return 0;
}

int vmm() {
  start();
  constexpr std::size_t kPage = 2 * kMiB;
  const AllocationProperties properties = on_device(0);
  DevicePointer base = 0;
  DRIVER(cuMemAddressReserve)(&base, 16 * kPage, 0, 0, 0);
  std::vector<AllocationHandle> handles(4);
  for (std::size_t at = 0; at < handles.size(); ++at) {
    DRIVER(cuMemCreate)(&handles[at], kPage, &properties, 0);
    DRIVER(cuMemMap)(base + at * kPage, kPage, 0, handles[at], 0);
  }
  DRIVER(cuMemRelease)(handles[0]);
  DRIVER(cuMemRelease)(handles[1]);
  DRIVER(cuMemUnmap)(base, 3 * kPage);  // three mappings, two of which were the last references to the memory
  DRIVER(cuMemRelease)(handles[2]);

  AllocationHandle again = 0;  // the fourth: mapped twice, with two references
  DRIVER(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(base + 3 * kPage + 5));
  DRIVER(cuMemMap)(base + 8 * kPage, kPage, 0, again, 0);
  DRIVER(cuMemRelease)(handles[3]);
  DRIVER(cuMemUnmap)(base + 3 * kPage, kPage);
  DRIVER(cuMemRelease)(again);
  DRIVER(cuMemUnmap)(base + 8 * kPage, kPage);

  AllocationHandle foreign = 0;  // memory of another process
  DRIVER(cuMemImportFromShareableHandle)(&foreign, reinterpret_cast<void*>(7), 1);
  DRIVER(cuMemMap)(base, kPage, 0, foreign, 0);
  DRIVER(cuMemRelease)(foreign);
  DRIVER(cuMemUnmap)(base, kPage);

  MulticastProperties multicast{2, kPage, 0, 0};
  AllocationHandle team = 0;
  DRIVER(cuMulticastCreate)(&team, &multicast);
  DRIVER(cuMemMap)(base, kPage, 0, team, 0);
  DRIVER(cuMemUnmap)(base, kPage);
  DRIVER(cuMemRelease)(team);

  AllocationProperties on_host = on_device(0);
  on_host.location.type = kLocationHost;
  AllocationHandle host_memory = 0;
  DRIVER(cuMemCreate)(&host_memory, 3 * kPage, &on_host, 0);
  DRIVER(cuMemCreate)(&handles[0], kPage, &properties, 0);
  DRIVER(cuMemRelease)(host_memory);
  return 0;
}

int graph() {
  start();
  GraphExec launched[2] = {};
  for (std::size_t at = 0; at < 2; ++at) {
    Graph graph = nullptr;
    DRIVER(cuGraphCreate)(&graph, 0);
    GraphAllocation allocation{};
    allocation.pool.beginning.location = {tidemark::process::cuda::kLocationDevice, 0};
    allocation.bytes = (at + 1) * 40 * kMiB;
    GraphNode node = nullptr;
    DRIVER(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &allocation);
    DRIVER(cuGraphInstantiateWithFlags)(&launched[at], graph, 0);
  }
  DRIVER(cuGraphLaunch)(launched[0], nullptr);
  DRIVER(cuGraphLaunch_ptsz)(launched[1], nullptr);
  DRIVER(cuGraphLaunch)(launched[0], nullptr);
  DRIVER(cuDeviceGraphMemTrim)(0);
  DRIVER(cuGraphLaunch)(launched[0], nullptr);
  return 0;
}

/// Made by the call that makes nodes of all kinds, and allocated by the upload.
int graph_nodes() {
  start();
  Graph graph = nullptr;
  DRIVER(cuGraphCreate)(&graph, 0);
  GraphNodeDescription description{};
  description.allocation.pool.beginning.location = {tidemark::process::cuda::kLocationDevice, 0};
  description.allocation.bytes = 40 * kMiB;
  GraphNode node = nullptr;
  DRIVER(cuGraphAddNode_v2)(&node, graph, nullptr, nullptr, 0, &description);
  GraphExec exec = nullptr;
  DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0);
  DRIVER(cuGraphUpload)(exec, nullptr);
  allocate(kMiB);
  DRIVER(cuGraphLaunch)(exec, nullptr);
  return 0;
}

int devices() {
  start(1);
  allocate(2 * kMiB);
  use_device(0);
  const DevicePointer block = allocate(3 * kMiB);
  std::thread([block] {
    use_device(1);
    free_block(block);  // of the other device
    const AllocationProperties properties = on_device(0);
    AllocationHandle handle = 0;
    DRIVER(cuMemCreate)(&handle, 4 * kMiB, &properties, 0);
    DevicePointer managed = 0;
    DRIVER(cuMemAllocManaged)(&managed, 5 * kMiB, 1);
    DevicePointer pooled = 0;
    DRIVER(cuMemAllocAsync)(&pooled, kMiB, nullptr);
  }).join();
  void* communicator = FUNCTION_OF("libnccl.so.2", fakes_nccl_open)();
  return communicator == nullptr ? 1 : 0;
}

int reset() {
  start();
  allocate(kMiB);
  DevicePointer pooled = 0;
  DRIVER(cuMemAllocAsync)(&pooled, kMiB, nullptr);
  DRIVER(cuDevicePrimaryCtxReset_v2)(0);
  allocate(2 * kMiB);
  return 0;
}

/// The script determines the failing calls.
int failing() {
  start();
  const DevicePointer first = allocate(kMiB);
  allocate(2 * kMiB);
  allocate(std::size_t{1} << 50);
  const AllocationProperties properties = on_device(0);
  AllocationHandle handle = 0;
  DRIVER(cuMemCreate)(&handle, 2 * kMiB, &properties, 0);
  DevicePointer pooled = 0;
  DRIVER(cuMemAllocAsync)(&pooled, 2 * kMiB, nullptr);
  void* pinned = nullptr;
  DRIVER(cuMemHostAlloc)(&pinned, kMiB, 0);
  DevicePointer managed = 0;
  DRIVER(cuMemAllocManaged)(&managed, kMiB, 1);
  free_block(first);
  allocate(4 * kMiB);
  return 0;
}

/// Everything is freed twice: the script makes the first time fail.
int failing_frees() {
  start();
  const DevicePointer blocks[2] = {allocate(kMiB), allocate(2 * kMiB)};
  void* pinned = nullptr;
  DRIVER(cuMemAllocHost_v2)(&pinned, 3 * kMiB);
  static char own[64 * kKiB];
  DRIVER(cuMemHostRegister_v2)(own, sizeof(own), 0);
  const AllocationProperties properties = on_device(0);
  AllocationHandle handle = 0;
  DRIVER(cuMemCreate)(&handle, 4 * kMiB, &properties, 0);
  DevicePointer mapped = 0;
  DRIVER(cuMemAddressReserve)(&mapped, 4 * kMiB, 0, 0, 0);
  DRIVER(cuMemMap)(mapped, 4 * kMiB, 0, handle, 0);
  const ArrayDescription description = {1024, 1024, 0x20, 1};
  Array array = nullptr;
  DRIVER(cuArrayCreate_v2)(&array, &description);
  PoolDescription pool_description{};
  pool_description.beginning.location = {tidemark::process::cuda::kLocationDevice, 0};
  MemoryPool pool = nullptr;
  DRIVER(cuMemPoolCreate)(&pool, &pool_description);
  std::uint64_t threshold = ~std::uint64_t{0};
  DRIVER(cuMemPoolSetAttribute)(pool, kPoolReleaseThreshold, &threshold);
  DevicePointer pooled = 0;
  DRIVER(cuMemAllocFromPoolAsync)(&pooled, 5 * kMiB, pool, nullptr);
  DRIVER(cuMemFreeAsync)(pooled, nullptr);
  for (const bool fails : {true, false}) {
    DRIVER(cuMemFree_v2)(blocks[0]);
    DRIVER(cuMemFreeAsync)(blocks[1], nullptr);
    DRIVER(cuCtxSynchronize)();  // frees it
    DRIVER(cuMemFreeHost)(pinned);
    DRIVER(cuMemHostUnregister)(own);
    DRIVER(cuMemRelease)(handle);
    DRIVER(cuMemUnmap)(mapped, 4 * kMiB);
    DRIVER(cuArrayDestroy)(array);
    DRIVER(cuMemPoolDestroy)(pool);
    allocate(fails ? 6 * kMiB : 7 * kMiB);
    if (fails) DRIVER(cuMemAllocFromPoolAsync)(&pooled, 50 * kMiB, pool, nullptr);  // its size is still checked
    if (fails) DRIVER(cuMemFreeAsync)(pooled, nullptr);
    DRIVER(cuDevicePrimaryCtxReset_v2)(0);
    allocate(fails ? 8 * kMiB : 9 * kMiB);
  }
  return 0;
}

/// Releases memory whose allocation the script hides; an unknown address cannot be freed.
int never_seen() {
  start();
  DevicePointer rows = 0;
  std::size_t pitch = 0;
  DRIVER(cuMemAllocPitch_v2)(&rows, &pitch, 1000, 64, 4);
  const DevicePointer block = allocate(kMiB);
  free_block(rows);
  free_block(0xDEAD000);
  free_block(block);
  return 0;
}

}  // namespace fakes
