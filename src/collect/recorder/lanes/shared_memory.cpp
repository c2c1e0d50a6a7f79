#include "collect/recorder/lanes/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tidemark {

Result<std::unique_ptr<SharedMemory>> SharedMemory::map(ScopedFd fd) {
  struct stat facts {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  const bool usable = ::fstat(fd.get(), &facts) == 0 && facts.st_size == static_cast<off_t>(sizeof(ring::Shared)) &&
                      seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  void* mapped =
      usable ? ::mmap(nullptr, sizeof(ring::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0) : MAP_FAILED;
  if (usable && mapped == MAP_FAILED) {
    return Error{fmt::format("its memory cannot be mapped: {}", std::strerror(errno))};
  }
  if (!usable) return Error{"it offered memory that is not a ring of this version of tidemark"};
  auto memory = std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<ring::Shared*>(mapped)));
  const ring::Control& control = memory->get()->control;
  if (control.magic != ring::kMagic || control.version != ring::kVersion) {
    return Error{"it uses the library of another version of tidemark"};
  }
  return memory;
}

SharedMemory::~SharedMemory() {
  ::munmap(shared_, sizeof(ring::Shared));
}

}  // namespace tidemark
