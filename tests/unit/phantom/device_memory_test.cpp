// Devices shared by several processes.
#include "phantom/gpu/device_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "phantom/gpu/memory.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/visible_devices.h"

namespace tidemark::phantom {
namespace {

constexpr std::uint64_t kGiB = 1 << 30;
constexpr int kDevice = 1;  // not used by the other tests

/// A process that holds `bytes` of the device until it is killed.
class Holder {
 public:
  explicit Holder(std::uint64_t bytes) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    process_ = fork();
    if (process_ == 0) {
      const char answer = take_memory(kDevice, bytes) ? 'y' : 'n';
      if (write(ready[1], &answer, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    took_ = answer == 'y';
    close(ready[0]);
    close(ready[1]);
  }
  ~Holder() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  /// Its parent does not wait for it: it stays in the table of processes.
  void end() const {
    EXPECT_EQ(kill(process_, SIGKILL), 0);
    siginfo_t ended;
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOWAIT), 0);
  }
  [[nodiscard]] bool took() const { return took_; }

 private:
  pid_t process_;
  bool took_ = false;
};

TEST(DeviceMemory, IsSharedByProcesses) {
  const std::uint64_t context = profile().context;
  const Holder first(100 * kGiB);
  ASSERT_TRUE(first.took());
  EXPECT_EQ(memory_used(kDevice), 100 * kGiB + context);
  EXPECT_FALSE(has_context(kDevice));

  EXPECT_FALSE(take_memory(kDevice, 50 * kGiB));
  EXPECT_TRUE(take_memory(kDevice, 20 * kGiB));
  EXPECT_EQ(memory_used(kDevice), 120 * kGiB + 2 * context);
  EXPECT_EQ(memory_of_processes(kDevice).size(), 2U);

  first.end();
  EXPECT_EQ(memory_used(kDevice), 20 * kGiB + context);
  const Holder second(100 * kGiB);
  EXPECT_TRUE(second.took());
  second.end();
  give_back_memory(kDevice, 20 * kGiB);
  EXPECT_EQ(memory_used(kDevice), context);
  const std::vector<ProcessMemory> left = memory_of_processes(kDevice);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].process, getpid());
}

TEST(DeviceMemory, IsFullWhenTheDriverTakesMoreThanIsLeft) {
  ASSERT_TRUE(make_context(kDevice));
  const std::uint64_t before = memory_used(kDevice);
  const std::uint64_t left = profile().memory - before;
  take_driver_memory(kDevice, kGiB);
  EXPECT_EQ(memory_used(kDevice), before + kGiB);
  take_driver_memory(kDevice, left);
  EXPECT_EQ(memory_used(kDevice), profile().memory);
  EXPECT_FALSE(take_memory(kDevice, 1));
  give_back_memory(kDevice, kGiB + left);
  EXPECT_EQ(memory_used(kDevice), before);
}

TEST(DeviceMemory, OfAForkedProcessIsItsOwn) {
  void* const parents = allocate_device(0, kGiB);
  const std::uint64_t before = memory_used(0);
  const pid_t child = fork();
  if (child == 0) _exit(free_device(parents) && memory_used(0) == before ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory_used(0), before);
  EXPECT_TRUE(free_device(parents));
  EXPECT_EQ(memory_used(0), before - kGiB);
}

extern "C" {
struct CudaIpcHandle {
  char bytes[64];
};
int cudaIpcGetMemHandle(CudaIpcHandle* handle, void* pointer);
int cudaIpcOpenMemHandle(void** pointer, CudaIpcHandle handle, unsigned flags);
int cudaIpcCloseMemHandle(void* pointer);
int cuMemExportToShareableHandle(void* shareable, std::uint64_t handle, int type, unsigned long long flags);
int cuMemImportFromShareableHandle(std::uint64_t* handle, void* shareable, int type);
}

TEST(DeviceMemory, OpenedByAnotherProcessIsCountedOnce) {
  void* const start = allocate_device(0, kGiB);
  CudaIpcHandle handle;
  ASSERT_EQ(cudaIpcGetMemHandle(&handle, static_cast<char*>(start) + 512), 0);
  void* opened = nullptr;
  EXPECT_NE(cudaIpcOpenMemHandle(&opened, handle, 1), 0);  // in the process that has it
  const std::uint64_t before = memory_used(0);
  const auto open_close = [&] {
    if (cudaIpcOpenMemHandle(&opened, handle, 1) != 0) return 1;
    const auto allocation = find_allocation(static_cast<char*>(opened) + kGiB - 1);
    if (!allocation || allocation->start != opened || allocation->bytes != kGiB) return 2;
    if (memory_used(0) != before + profile().context) return 3;
    if (cudaIpcCloseMemHandle(opened) != 0 || find_allocation(opened)) return 4;
    return 0;
  };
  const pid_t child = fork();
  if (child == 0) _exit(open_close());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(free_device(start));
}

TEST(DeviceMemory, OfExpandableSegmentsGoesThroughADescriptor) {
  const std::uint64_t physical = create_physical(0, kGiB);
  const std::uint64_t before = memory_used(0);
  int descriptor = -1;
  EXPECT_NE(cuMemExportToShareableHandle(&descriptor, physical + 1, 1, 0), 0);
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, physical, 1, 0), 0);
  std::uint64_t opened = 0;
  EXPECT_EQ(cuMemImportFromShareableHandle(&opened, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)), 1),
            0);
  EXPECT_NE(opened, physical);
  EXPECT_EQ(memory_used(0), before);
  EXPECT_TRUE(release_physical(opened));
  EXPECT_TRUE(release_physical(physical));
  EXPECT_EQ(memory_used(0), before - kGiB);
  close(descriptor);
  EXPECT_NE(cuMemImportFromShareableHandle(&opened, nullptr, 1), 0);  // stdin
}

// As the CUDA C++ Programming Guide describes the variable.
TEST(VisibleDevices, AreNamedByTheVariable) {
  using Devices = std::vector<int>;
  EXPECT_EQ(parse_visible_devices("0,1,2", 4), (Devices{0, 1, 2}));
  EXPECT_EQ(parse_visible_devices("3, 1", 4), (Devices{3, 1}));
  EXPECT_EQ(parse_visible_devices("0,-1,2", 4), (Devices{0}));
  EXPECT_EQ(parse_visible_devices("1,4,2", 4), (Devices{1}));
  EXPECT_EQ(parse_visible_devices("", 4), Devices{});
  EXPECT_EQ(parse_visible_devices("none", 4), Devices{});
  EXPECT_EQ(parse_visible_devices("1,1", 4), Devices{});
  EXPECT_EQ(
      parse_visible_devices("GPU-74696465-6d61-726b-2d70-68616e746f02,GPU-74696465-6d61-726b-2d70-68616e746f00", 4),
      (Devices{2, 0}));
  EXPECT_EQ(parse_visible_devices("GPU-8", 4), Devices{});
}

}  // namespace
}  // namespace tidemark::phantom
