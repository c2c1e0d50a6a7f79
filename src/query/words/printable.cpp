#include "query/words/printable.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>

namespace tidemark {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // …

struct CodePoint {
  utf8proc_int32_t value = 0;
  std::size_t length = 0;  // in bytes; 0 = not UTF-8

  // Columns on a terminal; 0 for marks that stand on the character before.
  [[nodiscard]] std::size_t width() const {
    return value < 0x80 || length == 0 ? 1 : static_cast<std::size_t>(std::max(utf8proc_charwidth(value), 0));
  }
};

// Decodes the first character of `text`, which is not empty. utf8proc accepts only well-formed sequences: no overlong
// forms, no surrogates.
CodePoint decode(std::string_view text) {
  CodePoint point;
  const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), &point.value);
  if (length > 0) point.length = static_cast<std::size_t>(length);
  return point;
}

// Length of the prefix of `text` that is printable ASCII, as nearly all text is: one column each, shown unchanged.
std::size_t plain_prefix(std::string_view text) {
  const auto special = [](char byte) { return static_cast<unsigned char>(byte - 0x20) >= 0x7F - 0x20; };
  return static_cast<std::size_t>(std::find_if(text.begin(), text.end(), special) - text.begin());
}

bool must_be_escaped(utf8proc_int32_t value) {
  if (value < 0x80) return value < 0x20 || value == 0x7F;
  switch (utf8proc_category(value)) {
    case UTF8PROC_CATEGORY_CC:  // controls
    case UTF8PROC_CATEGORY_CF:  // marks that reorder text (Unicode TR 9), and others without a shape
    case UTF8PROC_CATEGORY_ZL:  // separators of lines and paragraphs, at which some programs break lines
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

std::string escape(utf8proc_int32_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  if (number < 0x100) return fmt::format("\\x{:02x}", number);
  return number < 0x10000 ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const std::size_t plain = plain_prefix(text);
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return result;
    const CodePoint point = decode(text);
    if (point.length == 0) {
      result += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    if (must_be_escaped(point.value)) {
      result += escape(point.value);
    } else {
      result += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (true) {
    const std::size_t plain = plain_prefix(text);
    width += plain;
    text.remove_prefix(plain);
    if (text.empty()) return width;
    const CodePoint point = decode(text);
    width += point.width();
    text.remove_prefix(std::max<std::size_t>(point.length, 1));
  }
}

std::string shown(std::string_view name, std::size_t columns) {
  return fit(printable(name), columns);
}

std::string shell_argument(std::string_view argument) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:@%/";
  std::string word = printable(argument);
  const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  if (is_plain) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string shell_word(std::string_view name) {
  return shell_argument(name.starts_with('-') ? "./" + std::string(name) : std::string(name));
}

std::string fit_beginning(std::string_view text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return std::string(text);
  std::size_t end = 0;
  std::size_t columns = 1;  // of "…"
  while (end < text.size()) {
    const CodePoint point = decode(text.substr(end));
    if (columns + point.width() > width) break;
    columns += point.width();
    end += std::max<std::size_t>(point.length, 1);
  }
  return std::string(text.substr(0, end)).append(kEllipsis);
}

std::string fit(std::string_view text, std::size_t width) {
  const std::size_t have = display_width(text);
  if (width == 0 || have <= width) return std::string(text);
  // More of the end than of the start: file and line stand there.
  const std::size_t head = (width - 1) * 2 / 5;
  const std::size_t tail = width - 1 - head;
  if (plain_prefix(text) == text.size()) {
    return std::string(text.substr(0, head)).append(kEllipsis).append(text.substr(text.size() - tail));
  }
  std::size_t head_end = 0;
  std::size_t tail_start = text.size();
  bool in_head = true;
  std::size_t before = 0;  // columns before `index`
  for (std::size_t index = 0; index < text.size();) {
    const CodePoint point = decode(text.substr(index));
    const std::size_t columns = point.width();
    if (have - before <= tail && columns != 0) {
      tail_start = index;
      break;
    }
    index += std::max<std::size_t>(point.length, 1);
    before += columns;
    in_head = in_head && before <= head;
    if (in_head) head_end = index;
  }
  return std::string(text.substr(0, head_end)) + std::string(kEllipsis) + std::string(text.substr(tail_start));
}

}  // namespace tidemark
