#include "collect/process/python/safe_read.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tidemark::process {
namespace {

// Two pages, the second one unreadable.
class HalfReadable {
 public:
  HalfReadable() : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* pages = mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin_ = static_cast<char*>(pages);
    std::memcpy(edge() - 8, "tidemark", 8);
    mprotect(edge(), size_, PROT_NONE);
  }
  ~HalfReadable() { munmap(begin_, 2 * size_); }
  char* edge() const { return begin_ + size_; }

 private:
  std::size_t size_;
  char* begin_;
};

std::uintptr_t address(const char* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// 0 if everything is right: used in a child process too.
int check_reads() {
  const HalfReadable memory;
  char copy[16] = {};
  if (!safe_read(copy, address(memory.edge()) - 8, 8) || std::memcmp(copy, "tidemark", 8) != 0) return 1;
  if (safe_read(copy, address(memory.edge()), 8)) return 2;      // not readable
  if (safe_read(copy, address(memory.edge()) - 4, 8)) return 3;  // half readable
  if (safe_read(copy, 8, 8)) return 4;                           // never mapped
  if (safe_read(copy, ~std::uintptr_t{0} - 3, 8)) return 5;      // wraps around
  if (safe_read(copy, 0x8000000000000000, 8)) return 6;          // not a user address
  std::uint32_t word = 0;
  return safe_load(address(memory.edge()) - 4, &word) && std::memcmp(&word, "mark", 4) == 0 ? 0 : 7;
}

TEST(SafeRead, TellsReadableFromUnreadable) {
  EXPECT_EQ(check_reads(), 0);
}

TEST(SafeRead, WorksIfSystemCallIsForbidden) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter{4, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
      _exit(100);
    }
    const bool forbidden = syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0) == -1 && errno == EPERM;
    _exit(forbidden ? check_reads() : 101);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "this kernel does not let us install a seccomp filter";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tidemark::process
