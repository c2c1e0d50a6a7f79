// Preloaded into tidemark: once the file that NO_MEMORY_FROM names exists, `new` of NO_MEMORY_BYTES or more fails.
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace {

bool refused(std::size_t size) {
  static const char* const from = std::getenv("NO_MEMORY_FROM");
  static const char* const bytes = std::getenv("NO_MEMORY_BYTES");
  return from != nullptr && bytes != nullptr && size >= std::strtoull(bytes, nullptr, 10) && ::access(from, F_OK) == 0;
}

}  // namespace

void* operator new(std::size_t size) {
  void* memory = refused(size) ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
