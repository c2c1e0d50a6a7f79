// Scenes of threads, processes, pauses, other tools, and of PyTorch.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "scenes.h"

namespace fakes {
namespace {

void tell_tidemark(const char* function) {
  if (void* found = ::dlsym(RTLD_DEFAULT, function); found != nullptr) reinterpret_cast<void (*)()>(found)();
}

}  // namespace

/// Blocks pass from thread to thread; addresses are reused at once.
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
  const pid_t late = ::fork();  // the driver is unusable there, and reports it
  if (late == 0) ::_exit(DRIVER(cuInit)(0) == kNotInitialized && allocate(kMiB) == 0 ? 0 : 1);
  int status[2] = {};
  ::waitpid(child, &status[0], 0);
  ::waitpid(late, &status[1], 0);
  return status[0] + status[1];
}

/// During a pause, existing memory is released, and other memory gets its addresses.
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

/// Querying the driver about it afterwards crashes.
int pool_destroyed_in_pause() {
  start();
  PoolDescription description{};
  description.beginning.location = {tidemark::process::cuda::kLocationDevice, 0};
  MemoryPool pool = nullptr;
  DRIVER(cuMemPoolCreate)(&pool, &description);
  DevicePointer block = 0;
  DRIVER(cuMemAllocFromPoolAsync)(&block, kMiB, pool, nullptr);
  DRIVER(cuMemFreeAsync)(block, nullptr);
  tell_tidemark("tidemark_pause");
  DRIVER(cuMemPoolDestroy)(pool);
  tell_tidemark("tidemark_resume");
  DRIVER(cuMemAllocAsync)(&block, kMiB, nullptr);
  DRIVER(cuCtxSynchronize)();
  return 0;
}

namespace {

int tool_comes(int (*subscribe)()) {
  start();
  allocate(3 * kMiB);
  const int subscribed = subscribe();
  plain_work(1, 20);
  std::printf("%d %d\n", subscribed, FUNCTION_OF("libtool.so", fakes_tool_calls)());
  return FUNCTION_OF("libtool.so", fakes_tool_unsubscribe)();
}

}  // namespace

int tool_later() {
  return tool_comes(FUNCTION_OF("libtool.so", fakes_tool_subscribe));
}

int tool_by_handle() {
  return tool_comes(FUNCTION_OF("libtool.so", fakes_tool_subscribe_by_handle));
}

int activities_by_handle() {
  start();
  allocate(3 * kMiB);
  const int registered = FUNCTION_OF("libtool.so", fakes_tool_activities_by_handle)();
  allocate(4 * kMiB);
  return registered;
}

/// PyTorch, its libraries and a separate block, all alive until the processes of the GPU were listed twice.
int training() {
  start();
  const Torch torch{Library((libraries + "/libc10_cuda.so").c_str())};
  torch.free(1, 0, torch.allocate(1, 0, 50 * kMiB));
  torch.empty_cache(1, 0);
  torch.allocate(1, 0, 20 * kMiB);
  void* workspace = FUNCTION_OF("libcublasLt.so.13", fakes_cublas_open)();
  void* communicator = FUNCTION_OF("libnccl.so.2", fakes_nccl_open)();
  allocate(3 * kMiB);
  torch.free(1, 0, torch.allocate(1, 0, 7 * kMiB));
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  return workspace == nullptr || communicator == nullptr ? 1 : 0;
}

/// Two devices release their segments; the second has one again at the end. Page-locked memory comes and goes.
int empty_cache() {
  start(1);
  use_device(0);
  const Library library((libraries + "/libtorch_cuda.so").c_str());  // loads libc10_cuda, as Python's extension does
  const Torch torch(library);
  void* pinned = FUNCTION_OF("libtorch_cuda.so", fakes_pin)(2 * kMiB);
  static char own[64 * kKiB];
  FUNCTION_OF("libtorch_cuda.so", fakes_register)(own, sizeof(own));
  FUNCTION_OF("libtorch_cuda.so", fakes_pin)(5 * kMiB);
  for (int device = 0; device < 2; ++device) {
    void* first = torch.allocate(1, device, kMiB);
    void* second = torch.allocate(1, device, 50 * kMiB);
    torch.free(1, device, first);
    torch.free(1, device, second);
  }
  std::thread([&torch] {
    use_device(1);
    torch.empty_cache(1, 0);
  }).join();
  torch.empty_cache(1, 1);
  torch.allocate(1, 1, 7 * kMiB);
  FUNCTION_OF("libtorch_cuda.so", fakes_unregister)(own);
  FUNCTION_OF("libtorch_cuda.so", fakes_unpin)(pinned);
  return pinned == nullptr || library.function<decltype(fakes_registered)>("fakes_registered")() != 1 ? 1 : 0;
}

}  // namespace fakes
