#include "report/words/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace tidemark {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // …

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // in bytes; 0 = not UTF-8
};

// Well-formed sequences as in the Unicode standard, table 3-7: no overlong forms, no surrogates.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t index) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[index]));
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t length = 0;
  std::uint32_t lowest = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    lowest = 0x80;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    lowest = 0x800;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    lowest = 0x10000;
  }
  if (length == 0 || text.size() < length) return {};
  std::uint32_t value = first & (0x7FU >> length);
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xC0U) != 0x80) return {};
    value = value << 6 | (byte(index) & 0x3FU);
  }
  if (value < lowest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length};
}

bool reorders_text(std::uint32_t value) {
  return value == 0x061C || value == 0x200E || value == 0x200F || (value >= 0x202A && value <= 0x202E) ||
         (value >= 0x2066 && value <= 0x2069);
}

// Line and paragraph separators break lines in some programs.
bool must_be_escaped(std::uint32_t value) {
  return value < 0x20 || (value >= 0x7F && value < 0xA0) || reorders_text(value) || value == 0x2028 || value == 0x2029;
}

bool starts_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode(text);
    if (point.length == 0) {
      result += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    if (must_be_escaped(point.value)) {
      result += point.value < 0x100 ? fmt::format("\\x{:02x}", point.value) : fmt::format("\\u{:04x}", point.value);
    } else {
      result += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return result;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += starts_code_point(byte) ? 1U : 0U;
  return width;
}

std::string fit(std::string_view text, std::size_t width) {
  const std::size_t have = display_width(text);
  if (width == 0 || have <= width) return std::string(text);
  // More of the end than of the start: file and line stand there.
  const std::size_t head = (width - 1) * 2 / 5;
  const std::size_t tail = width - 1 - head;
  std::size_t head_end = text.size();
  std::size_t tail_start = text.size();
  std::size_t seen = 0;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (!starts_code_point(text[index])) continue;
    if (seen == head) head_end = index;
    if (seen == have - tail) tail_start = index;
    ++seen;
  }
  return std::string(text.substr(0, head_end)) + std::string(kEllipsis) + std::string(text.substr(tail_start));
}

}  // namespace tidemark
