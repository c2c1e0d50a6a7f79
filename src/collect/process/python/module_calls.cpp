#include "collect/process/python/module_calls.h"

#include <cstddef>

namespace tidemark::process {
namespace {

std::uint32_t code_point_at(const PythonText& text, std::size_t index) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(text.data) + index * text.kind;
  if (text.kind == 1) return load<std::uint8_t>(at);
  return text.kind == 2 ? load<std::uint16_t>(at) : load<std::uint32_t>(at);
}

/// `end` is ASCII.
template <std::size_t kSize>
bool ends_with(const PythonText& text, const char (&end)[kSize]) noexcept {
  constexpr std::size_t kLength = kSize - 1;
  if (text.length < kLength) return false;
  for (std::size_t index = 0; index < kLength; ++index) {
    if (code_point_at(text, text.length - kLength + index) != static_cast<unsigned char>(end[index])) return false;
  }
  return true;
}

bool has_cells(const Layout& layout, std::uintptr_t code) noexcept {
  if (layout.style != FrameStyle::frame_objects) return load<std::uint32_t>(code + layout.code_cells) != 0;
  const auto cells = load<std::uintptr_t>(code + layout.code_cells);
  return cells != 0 && load<std::size_t>(cells + kObjectSize) != 0;
}

}  // namespace

bool is_module_call(const Layout& layout, std::uintptr_t code, const PythonCode& names) noexcept {
  return ends_with(names.function, "_call_impl") && ends_with(names.file, "torch/nn/modules/module.py") &&
         !has_cells(layout, code);
}

}  // namespace tidemark::process
