#include "collect/process/file_names.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::process {
namespace {

struct NamedFile {
  NamedFile* next;
  const char* path;  ///< behind this
  const char* name;  ///< behind that
};

constinit std::atomic<NamedFile*> newest{nullptr};

std::uint32_t code_point(const PythonText& text, std::size_t index) noexcept {
  switch (text.kind) {
    case 1:
      return static_cast<const std::uint8_t*>(text.data)[index];
    case 2:
      return static_cast<const std::uint16_t*>(text.data)[index];
    default:
      return static_cast<const std::uint32_t*>(text.data)[index];
  }
}

// As UTF-8; how many bytes. Python's escapes of bytes that are none (surrogates) come out as bytes that no path has.
std::size_t encode(std::uint32_t point, unsigned char (&bytes)[4]) noexcept {
  if (point < 0x80) {
    bytes[0] = static_cast<unsigned char>(point);
    return 1;
  }
  const std::size_t count = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  constexpr unsigned char kFirst[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (std::size_t at = count - 1; at > 0; --at, point >>= 6) {
    bytes[at] = static_cast<unsigned char>(0x80 | (point & 0x3F));
  }
  bytes[0] = static_cast<unsigned char>(kFirst[count] | point);
  return count;
}

bool equal(const PythonText& text, const char* path) noexcept {
  std::size_t at = 0;
  for (std::size_t index = 0; index < text.length; ++index) {
    unsigned char bytes[4] = {};
    const std::size_t count = encode(code_point(text, index), bytes);
    if (::strncmp(path + at, reinterpret_cast<const char*>(bytes), count) != 0) return false;
    at += count;
  }
  return path[at] == '\0';
}

}  // namespace

void name_file(const char* path, const char* name) noexcept {
  if (path == nullptr || name == nullptr || *path == '\0') return;
  const std::size_t path_size = ::strlen(path) + 1;
  const std::size_t name_size = ::strlen(name) + 1;
  auto* file = static_cast<NamedFile*>(::malloc(sizeof(NamedFile) + path_size + name_size));
  if (file == nullptr) return;
  auto* const text = reinterpret_cast<char*>(file + 1);
  file->path = static_cast<const char*>(::memcpy(text, path, path_size));
  file->name = static_cast<const char*>(::memcpy(text + path_size, name, name_size));
  file->next = newest.load(std::memory_order_relaxed);
  while (!newest.compare_exchange_weak(file->next, file, std::memory_order_release)) {
  }
}

const char* name_of_file(const PythonText& path) noexcept {
  for (const NamedFile* file = newest.load(std::memory_order_acquire); file != nullptr; file = file->next) {
    if (equal(path, file->path)) return file->name;
  }
  return nullptr;
}

}  // namespace tidemark::process
