#include "collect/recorder/lanes/definition_fields.h"

namespace tidemark {
namespace {

void append_utf8(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | (code_point >> 6));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | (code_point >> 12));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | ((code_point >> 18) & 0x07));
    out += static_cast<char>(0x80 | ((code_point >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

// Text of a Python str: 1, 2 or 4 bytes for each code point. Lone surrogates become U+FFFD.
std::string python_text(std::uint8_t kind, std::string_view raw) {
  std::string out;
  if (kind != 1 && kind != 2 && kind != 4) return "?";
  for (std::size_t at = 0; at + kind <= raw.size(); at += kind) {
    std::uint32_t code_point = 0;
    std::memcpy(&code_point, raw.data() + at, kind);
    const bool valid = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    append_utf8(out, valid ? code_point : 0xFFFD);
  }
  return out;
}

}  // namespace

std::string DefinitionFields::python() {
  const auto kind = number<std::uint8_t>();
  return python_text(kind, text());
}

}  // namespace tidemark
