// Reads the fields of a definition that came through a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

/// `ok` turns false where the fields run past the definition's end.
class DefinitionFields {
 public:
  explicit DefinitionFields(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T number() {
    T value{};
    const std::string_view raw = take(sizeof(T));
    if (ok) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  std::string_view text() { return take(number<std::uint32_t>()); }
  /// Text of a Python str, as UTF-8: {u8 bytes for each code point, text}.
  std::string python();

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  bool ok = true;

 private:
  std::string_view take(std::size_t size) {
    if (!ok || size > rest_.size()) {
      ok = false;
      return {};
    }
    const std::string_view taken(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest_;
};

}  // namespace tidemark
