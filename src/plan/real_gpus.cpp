#include "plan/real_gpus.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace tidemark {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Requests to NVIDIA's driver have the type 'F' and numbers from 200 on (NV_IOCTL_MAGIC and NV_IOCTL_BASE in its
// nv-ioctl-numbers.h). Without the first of them, which compares versions, CUDA finds no device. Those of frame
// buffers, which have the type too, are below.
constexpr unsigned kFirstRequest = 'F' << 8 | 200;
constexpr unsigned kLastRequest = 'F' << 8 | 0xFF;

}  // namespace

bool has_nvidia_driver() {
  return ::access("/dev/nvidiactl", F_OK) == 0;
}

// An environment alone does not do: CUDA_VISIBLE_DEVICES is gone after `env -i`. Hiding the files of the devices needs
// a mount namespace, which not every user may make.
void refuse_nvidia_driver() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 7),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),  // the low half, on little-endian machines
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xFFFF),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstRequest, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastRequest, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENODEV),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace tidemark
