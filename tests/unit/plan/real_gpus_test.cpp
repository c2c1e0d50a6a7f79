#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "launch/background_process.h"
#include "plan/gpu_profiles.h"

namespace tidemark {
namespace {

// Error of a request to a file that is not NVIDIA's device.
int error_of(unsigned long request) {
  const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  char argument[4096] = {};
  const int error = ::ioctl(file, request, argument) == 0 ? 0 : errno;
  ::close(file);
  return error;
}

// NVIDIA's version check: NV_ESC_CHECK_VERSION_STR with its structure.
constexpr unsigned long kVersionCheck = _IOC(_IOC_READ | _IOC_WRITE, 'F', 210, 72);

int code_of(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RealGpusTest, TheDriverIsRefusedToAllThatAProcessStarts) {
  ASSERT_EQ(error_of(kVersionCheck), ENOTTY);
  const pid_t child = ::fork();
  if (child == 0) {
    refuse_nvidia_driver();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(error_of(kVersionCheck));
    const bool others = error_of(FIONREAD) == ENOTTY && error_of(_IO('F', 199)) == ENOTTY &&
                        error_of(_IO('F', 200)) == ENODEV && error_of(_IO('F', 255)) == ENODEV &&
                        error_of(_IO('G', 210)) == ENOTTY;
    ::_exit(others ? code_of(grandchild) : 1);
  }
  EXPECT_EQ(code_of(child), ENODEV);
}

TEST(RealGpusTest, AlsoAfterTheEnvironmentWasCleared) {
  const char* const script =
      "import fcntl, sys\n"
      "try:\n"
      "    fcntl.ioctl(open('/dev/null'), 0xC04846D2, bytearray(72))\n"
      "except OSError as error:\n"
      "    sys.exit(error.errno)\n";
  pid_t process = 0;
  ASSERT_EQ(execute({{"env", "-i", "/usr/bin/python3", "-c", script}}, refuse_nvidia_driver, process), 0);
  EXPECT_EQ(code_of(process), ENODEV);
}

}  // namespace
}  // namespace tidemark
