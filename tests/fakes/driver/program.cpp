// A program that uses the memory of the stand-in driver.   program SCENE FOLDER-OF-LIBRARIES
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "driver_library.h"
#include "fakes/library.h"
#include "libraries.h"

namespace {

using namespace fakes;

constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kMiB = 1 << 20;
constexpr std::int32_t kLocationHost = 2;  // CU_MEM_LOCATION_TYPE_HOST

std::string libraries;  // NOLINT: the folder

template <typename Function>
Function* function_of(const char* library, const char* name) {
  return Library((libraries + "/" + library).c_str()).function<Function>(name);
}
#define FUNCTION_OF(library, name) function_of<decltype(::name)>(library, #name)

void use_device(Device device) {
  Context context = nullptr;
  if (DRIVER(cuDevicePrimaryCtxRetain)(&context, device) == kSuccess) DRIVER(cuCtxSetCurrent)(context);
}

void start(Device device = 0) {
  DRIVER(cuInit)(0);
  use_device(device);
}

DevicePointer allocate(std::size_t bytes) {
  DevicePointer address = 0;
  DRIVER(cuMemAlloc_v2)(&address, bytes);
  return address;
}

void free_block(DevicePointer address) {
  DRIVER(cuMemFree_v2)(address);
}

/// Random blocks that come and go; a few stay.
void plain_work(unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<DevicePointer> blocks;
  for (int step = 0; step < steps; ++step) {
    if (blocks.empty() || random() % 100 < 55) {
      blocks.push_back(allocate(random() % (8 * kMiB) + 1));
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      free_block(blocks.back());
      blocks.pop_back();
    }
  }
}

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

MemoryPool create_pool(const Location& location) {
  PoolDescription description{};
  description.beginning = {1, 0, location};
  MemoryPool pool = nullptr;
  DRIVER(cuMemPoolCreate)(&pool, &description);
  return pool;
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

/// One pool after the other; of each the memory is given back only with the pool.
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

int pools() {
  start();
  std::vector<DevicePointer> blocks(6);
  for (DevicePointer& block : blocks) DRIVER(cuMemAllocAsync)(&block, 12 * kMiB, nullptr);
  for (std::size_t at = 0; at < 3; ++at) DRIVER(cuMemFreeAsync)(blocks[at], nullptr);
  DRIVER(cuStreamSynchronize)(nullptr);
  free_block(blocks[4]);  // allowed for memory of pools too; and what they need no more goes at once
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

AllocationProperties on_device(Device device) {
  AllocationProperties properties{};
  properties.type = 1;
  properties.location = {tidemark::process::cuda::kLocationDevice, device};
  return properties;
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
  DRIVER(cuMemUnmap)(base, 3 * kPage);  // three mappings, of which two were all that kept the memory
  DRIVER(cuMemRelease)(handles[2]);

  AllocationHandle again = 0;  // the fourth: mapped twice, referred to twice
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

/// Blocks pass from thread to thread; addresses are handed out again at once.
int threads() {
  start();
  std::mutex lock;
  std::vector<DevicePointer> shared;
  std::vector<std::thread> workers;
  for (unsigned seed = 0; seed < 4; ++seed) {
    workers.emplace_back([&, seed] {
      use_device(0);
      std::mt19937 random(seed);
      for (int step = 0; step < 2000; ++step) {
        DevicePointer taken = 0;
        if (random() % 2 == 0) {
          taken = allocate((random() % 4 + 1) * kKiB);
          const std::lock_guard guard(lock);
          shared.push_back(taken);
          continue;
        }
        {
          const std::lock_guard guard(lock);
          if (shared.empty()) continue;
          std::swap(shared[random() % shared.size()], shared.back());
          taken = shared.back();
          shared.pop_back();
        }
        free_block(taken);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
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

/// Each thread makes pools and destroys them, while the others' synchronizations ask how large all pools are.
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

int killed() {
  start();
  plain_work(1, 300);
  return ::raise(SIGKILL);
}

int forks() {
  const pid_t child = ::fork();
  start();
  plain_work(child == 0 ? 1 : 2, 50);
  if (child == 0) return 0;
  const pid_t late = ::fork();  // the driver is of no use there, and says so
  if (late == 0) ::_exit(DRIVER(cuInit)(0) == kNotInitialized && allocate(kMiB) == 0 ? 0 : 1);
  int status[2] = {};
  ::waitpid(child, &status[0], 0);
  ::waitpid(late, &status[1], 0);
  return status[0] + status[1];
}

/// What the script lets nobody hear of is given back, and an address that is nobody's.
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

void tell_tidemark(const char* function) {
  if (void* found = ::dlsym(RTLD_DEFAULT, function); found != nullptr) reinterpret_cast<void (*)()>(found)();
}

/// While nothing is recorded, what was there is given back, and other memory gets its addresses.
int paused() {
  start();
  const AllocationProperties properties = on_device(0);
  const DevicePointer before = allocate(kMiB);
  AllocationHandle handle = 0;
  DRIVER(cuMemCreate)(&handle, 2 * kMiB, &properties, 0);
  DevicePointer pooled = 0;
  DRIVER(cuMemAllocAsync)(&pooled, 5 * kMiB, nullptr);
  tell_tidemark("tidemark_pause");
  free_block(before);
  DRIVER(cuMemRelease)(handle);
  DRIVER(cuMemFreeAsync)(pooled, nullptr);
  DRIVER(cuStreamSynchronize)(nullptr);
  const DevicePointer meanwhile = allocate(3 * kMiB);
  tell_tidemark("tidemark_resume");
  free_block(meanwhile);
  const bool same = allocate(kMiB) == before;
  const AllocationHandle first = handle;
  DRIVER(cuMemCreate)(&handle, 2 * kMiB, &properties, 0);
  DRIVER(cuStreamSynchronize)(nullptr);
  return same && handle == first ? 0 : 1;
}

int tool_before() {
  const int subscribed = FUNCTION_OF("libtool.so", fakes_tool_subscribe)();
  start();
  plain_work(1, 20);
  std::printf("%d %d\n", subscribed, FUNCTION_OF("libtool.so", fakes_tool_calls)());
  return 0;
}

int tool_later() {
  start();
  allocate(3 * kMiB);
  const int subscribed = FUNCTION_OF("libtool.so", fakes_tool_subscribe)();
  plain_work(1, 20);
  std::printf("%d %d\n", subscribed, FUNCTION_OF("libtool.so", fakes_tool_calls)());
  return FUNCTION_OF("libtool.so", fakes_tool_unsubscribe)();
}

/// Which calls fail says the script.
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

int reset() {
  start();
  allocate(kMiB);
  DevicePointer pooled = 0;
  DRIVER(cuMemAllocAsync)(&pooled, kMiB, nullptr);
  DRIVER(cuDevicePrimaryCtxReset_v2)(0);
  allocate(2 * kMiB);
  return 0;
}

/// PyTorch, its libraries and an own block, all there until the processes of the GPU were listed twice.
int training() {
  start();
  const Torch torch{Library((libraries + "/libc10_cuda.so").c_str())};
  void* tensor = torch.allocate(1, 0, 20 * kMiB);
  void* workspace = FUNCTION_OF("libcublasLt.so.13", fakes_cublas_open)();
  void* communicator = FUNCTION_OF("libnccl.so.2", fakes_nccl_open)();
  allocate(3 * kMiB);
  torch.free(1, 0, torch.allocate(1, 0, 7 * kMiB));
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  torch.free(1, 0, tensor);
  torch.empty_cache(1, 0);
  FUNCTION_OF("libnccl.so.2", fakes_nccl_close)(communicator);
  std::printf("%lu\n", torch.counters(1, 0).peak_reserved);
  return workspace == nullptr ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string scene = arguments[1];
  libraries = arguments[2];
  if (scene == "plain") return plain();
  if (scene == "libraries") return through_libraries();
  if (scene == "host") return host();
  if (scene == "pools") return pools();
  if (scene == "pools_elsewhere") return pools_elsewhere();
  if (scene == "many_pools") return many_pools();
  if (scene == "pool_threads") return pool_threads();
  if (scene == "pools_come_and_go") return pools_come_and_go();
  if (scene == "killed") return killed();
  if (scene == "vmm") return vmm();
  if (scene == "graph") return graph();
  if (scene == "devices") return devices();
  if (scene == "threads") return threads();
  if (scene == "forks") return forks();
  if (scene == "never_seen") return never_seen();
  if (scene == "paused") return paused();
  if (scene == "tool_before") return tool_before();
  if (scene == "tool_later") return tool_later();
  if (scene == "failing") return failing();
  if (scene == "reset") return reset();
  if (scene == "training") return training();
  return 2;
}
