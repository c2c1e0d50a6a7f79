// Events of the fakes, in a file that survives any kind of exit: the truth for comparison with a recording.
//
// Appending takes no lock and allocates nothing, so that signal handlers can use it too.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace fakes {

enum class Kind : std::uint32_t {
  none = 0,      ///< incomplete
  allocate = 1,  ///< of a device, with totals
  free = 2,      ///< of a device; `size` is the block's
  fail = 3,      ///< out of memory on a device
  cpu_new = 4,   ///< ProfiledCPUMemoryReporter::New
  cpu_delete = 5,
  cpu_fail = 6,
  profiler = 7,  ///< c10's report to the profiler about CPU memory, which Tidemark has seen already
  mark = 8,      ///< the program has reached a point known to the test
};

struct Entry {
  std::atomic<Kind> kind;
  std::int32_t pid;
  std::int32_t tid;
  std::uint64_t address;
  std::int64_t size;
  std::uint64_t allocated;
  std::uint64_t reserved;
  std::int8_t device_type;
  std::int8_t device_index;
};

struct Content {
  static constexpr std::size_t kMax = 1 << 19;

  std::atomic<std::uint64_t> count;
  Entry entries[kMax];
};

/// The file in an environment variable, mapped and shared: reloaded libraries, and forked children, continue it.
/// Hidden: a library that used another's copy of this would keep that one loaded.
class __attribute__((visibility("hidden"))) EventLog {
 public:
  explicit EventLog(const char* variable) noexcept {
    const char* path = std::getenv(variable);
    if (path == nullptr) return;
    const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(Content)) != 0) std::abort();
    void* mapped = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) std::abort();
    ::close(fd);
    content_ = static_cast<Content*>(mapped);
  }

  void add(Kind kind, const void* address, std::int64_t size, std::uint64_t allocated, std::uint64_t reserved,
           std::int8_t device_type, std::int8_t device_index) noexcept {
    if (content_ == nullptr) return;
    const std::uint64_t index = content_->count.fetch_add(1);
    if (index >= Content::kMax) std::abort();
    Entry& entry = content_->entries[index];
    entry.pid = ::getpid();
    entry.tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
    entry.address = reinterpret_cast<std::uintptr_t>(address);
    entry.size = size;
    entry.allocated = allocated;
    entry.reserved = reserved;
    entry.device_type = device_type;
    entry.device_index = device_index;
    entry.kind.store(kind);
  }

 private:
  Content* content_ = nullptr;  ///< null if the variable is not set: nothing is compared
};

}  // namespace fakes
