#include "collect/process/import_slots.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "collect/process/elf_dynamic.h"

namespace tidemark::process {
namespace {

struct Request {
  const char* symbol;
  void* replacement;
  void* original = nullptr;  ///< where a bound slot leads
  void* definition = nullptr;
  std::size_t patched = 0;
};

void* load(void** slot) {
  return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

// This library or another copy of it, which defines the same functions and must not be taken for the original.
bool is_ours(const DynamicObject& object) {
  return object.contains(reinterpret_cast<const void*>(&patch_import_slots)) ||
         find_definition(object, "tidemark_attach") != nullptr;
}

/// Whether the kernel has the page of `address` mapped writable, read from /proc/self/maps without allocating.
class MapsReader {
 public:
  explicit MapsReader(int fd) : fd_(fd) {}

  bool writable(std::uintptr_t address) {
    // Lines: "begin-end rwxp …"
    for (;;) {
      const std::uintptr_t begin = hexadecimal();
      const std::uintptr_t end = hexadecimal();
      next();  // r
      const int write = next();
      if (write < 0) return false;
      if (address >= begin && address < end) return write == 'w';
      for (int c = next(); c != '\n'; c = next()) {
        if (c < 0) return false;
      }
    }
  }

 private:
  /// A number and the character behind it.
  std::uintptr_t hexadecimal() {
    std::uintptr_t value = 0;
    for (int c = next(); c > ' ' && c != '-'; c = next()) {
      value = value << 4 | static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
  }

  int next() {
    if (at_ == size_) {
      size_ = read(fd_, buffer_, sizeof buffer_);
      at_ = 0;
      if (size_ <= 0) {
        size_ = 0;
        return -1;
      }
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

  int fd_;
  ssize_t at_ = 0;
  ssize_t size_ = 0;
  char buffer_[2048];
};

// Also where nothing can be learned about it, such as without /proc or with no descriptor left.
bool is_writable(std::uintptr_t address) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const bool result = MapsReader(fd).writable(address);
  close(fd);
  return result;
}

/// Stores into a slot. One that was made read-only is opened for the moment. An object that another thread is still
/// relocating is writable, and must stay so.
bool store(const DynamicObject& object, void** slot, void* value) {
  const auto address = reinterpret_cast<std::uintptr_t>(slot);
  const bool protectable = address >= object.relro_begin && address < object.relro_end;
  const bool close_again = protectable && !is_writable(address);
  const auto page_size = static_cast<std::size_t>(getpagesize());
  auto* page = reinterpret_cast<void*>(address / page_size * page_size);
  if (protectable && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (close_again) mprotect(page, page_size, PROT_READ);
  return true;
}

/// First pass. A slot that leads into its own object is not bound yet (to its PLT), or the object imports what it
/// defines itself: both are answered by the definition.
int find_original(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  auto& request = *static_cast<Request*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object) || is_ours(object)) return 0;
  if (request.definition == nullptr) request.definition = find_definition(object, request.symbol);
  std::size_t position = 0;
  while (void** slot = next_import_slot(object, request.symbol, &position)) {
    void* target = load(slot);
    if (target != nullptr && target != request.replacement && !object.contains(target)) request.original = target;
  }
  return request.original != nullptr ? 1 : 0;
}

/// Second pass.
int patch_object(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  auto& request = *static_cast<Request*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object) || is_ours(object)) return 0;
  std::size_t position = 0;
  while (void** slot = next_import_slot(object, request.symbol, &position)) {
    if (load(slot) == request.replacement || store(object, slot, request.replacement)) ++request.patched;
  }
  return 0;
}

}  // namespace

std::size_t patch_import_slots(const char* symbol, void* replacement, void** original) noexcept {
  Request request{symbol, replacement};
  if (load(original) == nullptr) {
    dl_iterate_phdr(find_original, &request);
    void* found = request.original != nullptr ? request.original : request.definition;
    if (found == nullptr) return 0;
    __atomic_store_n(original, found, __ATOMIC_RELEASE);
  }
  dl_iterate_phdr(patch_object, &request);
  return request.patched;
}

}  // namespace tidemark::process
