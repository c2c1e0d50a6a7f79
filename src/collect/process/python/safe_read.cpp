#include "collect/process/python/safe_read.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tidemark::process {
namespace {

// For unreadable memory, write() to a pipe fails with EFAULT instead of raising a signal.
bool read_through_pipe(void* to, std::uintptr_t address, std::size_t size) noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const auto wanted = static_cast<ssize_t>(size);
  const bool copied =
      write(ends[1], reinterpret_cast<const void*>(address), size) == wanted && read(ends[0], to, size) == wanted;
  close(ends[0]);
  close(ends[1]);
  return copied;
}

}  // namespace

bool safe_read(void* to, std::uintptr_t address, std::size_t size) noexcept {
  if (size > 4096) return false;  // a pipe always takes this much in one write
  iovec local{to, size};
  iovec remote{reinterpret_cast<void*>(address), size};
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied >= 0) return static_cast<std::size_t>(copied) == size;
  // Refused by a sandbox (EPERM, ENOSYS), or not readable (EFAULT): the pipe distinguishes these.
  return read_through_pipe(to, address, size);
}

}  // namespace tidemark::process
