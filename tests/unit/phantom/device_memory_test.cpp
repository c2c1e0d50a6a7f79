// Devices that several processes share.
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
constexpr int kDevice = 1;  // which the other tests leave alone

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
  /// Its parent does not ask for its exit code: it stays in the table of processes.
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

// As the CUDA C++ Programming Guide describes the variable.
TEST(VisibleDevices, AreThoseThatTheVariableNames) {
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
