#include <unistd.h>

#include <cstring>

#include "collect/process/native/loaded_object.h"
#include "collect/process/native/unwinder.h"

namespace tidemark::process {
namespace {

/// Copies the descriptor of NT_GNU_BUILD_ID from a note segment; notes are padded to the segment's alignment, 4 or 8
/// bytes.
bool read_build_id(const Segment& segment, std::uintptr_t address, std::size_t size, std::size_t alignment,
                   NativeModule* out) {
  const std::size_t begin = address - segment.address;
  if (!segment.contains(address) || size > segment.size - begin) return false;
  const auto padded = [&](std::uint64_t length) { return (length + alignment - 1) / alignment * alignment; };
  ByteReader reader(segment, begin, begin + size);
  while (reader.remaining() >= 3 * sizeof(std::uint32_t)) {
    const auto name_size = reader.read<std::uint32_t>();
    const auto text_size = reader.read<std::uint32_t>();
    const auto type = reader.read<std::uint32_t>();
    const std::size_t name = reader.position();
    reader.skip(padded(name_size));
    const std::size_t text = reader.position();
    reader.skip(text_size);
    if (reader.failed()) return false;
    if (type == NT_GNU_BUILD_ID && name_size == 4 && std::memcmp(segment.bytes + name, "GNU", 4) == 0 &&
        text_size <= sizeof out->build_id) {
      std::memcpy(out->build_id, segment.bytes + text, text_size);
      out->build_id_size = static_cast<std::uint8_t>(text_size);
      return true;
    }
    const std::uint64_t padding = padded(text_size) - text_size;
    if (padding > reader.remaining()) return false;
    reader.skip(padding);
  }
  return false;
}

void find_build_id(const LoadedObject& object, NativeModule* out) {
  out->build_id_size = 0;
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const auto& header = object.headers[i];
    if (header.p_type != PT_NOTE) continue;
    const std::uintptr_t address = object.bias + header.p_vaddr;
    if (read_build_id(object.segment_at(address), address, header.p_filesz, header.p_align == 8 ? 8 : 4, out)) return;
  }
}

/// The executable has no name in the loader; the kernel's link has the path from which it was started.
bool read_executable_path(NativeModule* out) {
  const ssize_t length = readlink("/proc/self/exe", out->path_buffer, sizeof out->path_buffer - 1);
  if (length <= 0) return false;
  out->path_buffer[length] = '\0';
  return true;
}

/// A library opened by a relative path, resolved in the current working directory.
bool make_absolute(const char* name, NativeModule* out) {
  if (getcwd(out->path_buffer, sizeof out->path_buffer) == nullptr) return false;
  const std::size_t directory = std::strlen(out->path_buffer);
  const std::size_t length = std::strlen(name);
  if (length + directory + 2 > sizeof out->path_buffer) return false;
  out->path_buffer[directory] = '/';
  std::memcpy(out->path_buffer + directory + 1, name, length + 1);
  return true;
}

}  // namespace

bool native_module_at(std::uintptr_t pc, NativeModule* out) noexcept {
  LoadedObject object;
  if (!find_loaded_object(pc, &object)) return false;
  out->start = object.start;
  out->end = object.end;
  out->load_address = object.bias;
  const char* name = object.name != nullptr ? object.name : "";
  out->path = name;
  if (name[0] == '\0') {
    if (read_executable_path(out)) out->path = out->path_buffer;
  } else if (std::strncmp(name, "linux-vdso", 10) == 0 || std::strncmp(name, "linux-gate", 10) == 0) {
    out->path = "[vdso]";
  } else if (name[0] != '/' && make_absolute(name, out)) {
    out->path = out->path_buffer;
  }
  find_build_id(object, out);
  return true;
}

}  // namespace tidemark::process
