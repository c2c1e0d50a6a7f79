#include "phantom/gpu/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/scoped_fd.h"
#include "phantom/gpu/memory.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {
namespace {

using Process = MemoryTable::Process;
constexpr int kMaxProcesses = MemoryTable::kMaxProcesses;

// Locks of a byte of the file belong to a process, and the kernel releases them when it ends: byte 0 is the table's,
// the others mark places in use.
bool lock_byte(int file, int byte, short type, int command) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  int result = 0;
  while ((result = fcntl(file, command, &lock)) != 0 && errno == EINTR) {
  }
  return command == F_GETLK ? result == 0 && lock.l_type != F_UNLCK : result == 0;
}

class DeviceMemory {
 public:
  DeviceMemory() {
    const std::string path = std::string(phantom_folder()) + "/memory";
    file_.reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file_ || ftruncate(file_.get(), sizeof(MemoryTable)) != 0) return;
    void* const mapped = mmap(nullptr, sizeof(MemoryTable), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (mapped != MAP_FAILED) table_ = static_cast<MemoryTable*>(mapped);
  }

  // The locked table, with the place of this process.
  class Locked {
   public:
    explicit Locked(DeviceMemory& memory) : memory_(memory), lock_(memory.mutex_) {
      if (memory.table_ != nullptr) lock_byte(memory.file_.get(), 0, F_WRLCK, F_SETLKW);
      memory.find_place();
    }
    ~Locked() {
      if (memory_.table_ != nullptr) lock_byte(memory_.file_.get(), 0, F_UNLCK, F_SETLK);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    Process& own() { return *memory_.own_; }
    std::vector<ProcessMemory> on(int device) {
      std::vector<ProcessMemory> found;
      const auto add = [&](const Process& process) {
        if (process.context[device]) found.push_back({process.number, profile().context + process.bytes[device]});
      };
      add(own());
      if (memory_.table_ == nullptr) return found;
      for (int place = 0; place < kMaxProcesses && memory_.table_->processes[place].number != 0; ++place) {
        const Process& process = memory_.table_->processes[place];
        if (&process != memory_.own_ && process.context[device] && memory_.is_alive(place)) add(process);
      }
      return found;
    }
    std::uint64_t used(int device) {
      std::uint64_t bytes = 0;
      for (const ProcessMemory& process : on(device)) bytes += process.bytes;
      return bytes;
    }
    bool take(int device, std::uint64_t bytes) {
      const std::uint64_t context = own().context[device] ? 0 : profile().context;
      const std::uint64_t left = profile().memory - std::min(profile().memory, used(device));
      if (context > left || bytes > left - context) return false;
      add(device, bytes);
      return true;
    }
    void add(int device, std::uint64_t bytes) {
      own().context[device] = true;
      own().bytes[device] += bytes;
      if (memory_.table_ == nullptr) return;
      std::uint64_t& peak = memory_.table_->peaks[device];
      peak = std::max(peak, used(device));
    }

   private:
    DeviceMemory& memory_;
    std::lock_guard<std::mutex> lock_;
  };

 private:
  [[nodiscard]] bool is_alive(int place) const { return lock_byte(file_.get(), place + 1, F_WRLCK, F_GETLK); }

  // A forked child gets its own place: locks are not inherited.
  void find_place() {
    if (own_ != nullptr && own_->number == getpid()) return;
    own_ = &alone_;
    for (int place = 0; table_ != nullptr && place < kMaxProcesses; ++place) {
      if (!lock_byte(file_.get(), place + 1, F_WRLCK, F_SETLK)) continue;
      own_ = &table_->processes[place];
      break;
    }
    *own_ = {};
    own_->number = getpid();
  }

  std::mutex mutex_;
  ScopedFd file_;
  MemoryTable* table_ = nullptr;  // null if the file could not be created
  Process* own_ = nullptr;
  Process alone_{};  // used if the table has no free place
};

DeviceMemory& device_memory() {
  static auto* const kMemory = new DeviceMemory;  // never destroyed: destructors of the program may still free memory
  return *kMemory;
}

}  // namespace

bool make_context(int device) {
  return take_memory(device, 0);
}

bool has_context(int device) {
  return DeviceMemory::Locked(device_memory()).own().context[device];
}

bool take_memory(int device, std::uint64_t bytes) {
  return DeviceMemory::Locked(device_memory()).take(device, bytes);
}

void give_back_memory(int device, std::uint64_t bytes) {
  DeviceMemory::Locked table(device_memory());
  std::uint64_t& held = table.own().bytes[device];
  held -= std::min(held, bytes);  // a forked child may free memory that its parent took
}

void take_driver_memory(int device, std::uint64_t bytes) {
  DeviceMemory::Locked(device_memory()).add(device, bytes);
}

std::vector<ProcessMemory> memory_of_processes(int device) {
  return DeviceMemory::Locked(device_memory()).on(device);
}

std::uint64_t memory_used(int device) {
  return std::min(profile().memory, DeviceMemory::Locked(device_memory()).used(device));
}

}  // namespace tidemark::phantom
