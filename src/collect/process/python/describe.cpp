#include "collect/process/python/describe.h"

namespace tidemark::process {

bool has_type_flag(std::uintptr_t object, std::uint64_t flag) noexcept {
  if (object == 0) return false;
  return (load<std::uint64_t>(load<std::uintptr_t>(object + kObjectType) + kTypeFlags) & flag) != 0;
}

// Characters of a str (PEP 393): behind its header when compact, else where its last field points.
bool read_text(const Layout& layout, std::uintptr_t text, PythonText* out) noexcept {
  if (!has_type_flag(text, kStringSubclassFlag)) return false;
  const auto state = load<std::uint32_t>(text + kStringState);
  const std::uint32_t kind = state >> kStateKindShift & 7U;
  if (kind != 1 && kind != 2 && kind != 4) return false;  // 0: a wchar_t string of 3.9 to 3.11 that is not ready
  std::uintptr_t data = text + ((state & kStateAscii) != 0 ? layout.ascii_string_size : layout.compact_string_size);
  if ((state & kStateCompact) == 0) data = load<std::uintptr_t>(text + layout.compact_string_size);
  if (data == 0) return false;
  *out = {reinterpret_cast<const void*>(data), load<std::size_t>(text + kStringLength),
          static_cast<std::uint8_t>(kind)};
  return true;
}

bool describe_code(const Layout& layout, std::uintptr_t code_type, std::uintptr_t code, PythonCode* out) noexcept {
  if (load<std::uintptr_t>(code + kObjectType) != code_type) return false;
  const auto line_table = load<std::uintptr_t>(code + layout.code_line_table);
  if (!has_type_flag(line_table, kBytesSubclassFlag)) return false;
  out->first_line = load<std::uint32_t>(code + layout.code_first_line);
  out->line_table = reinterpret_cast<const void*>(line_table + kBytesData);
  out->line_table_size = load<std::size_t>(line_table + kObjectSize);
  out->code_offset = layout.code_bytecode;
  return read_text(layout, load<std::uintptr_t>(code + layout.code_file), &out->file) &&
         read_text(layout, load<std::uintptr_t>(code + layout.code_function), &out->function);
}

}  // namespace tidemark::process
