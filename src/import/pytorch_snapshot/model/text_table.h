// Every text of the pickle once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "import/pytorch_snapshot/model/id_index.h"

namespace tidemark::pytorch {

/// Not thread-safe. Views stay valid until the next text is added.
class TextTable {
 public:
  /// The texts of known.h come first, with their ids.
  TextTable();

  /// Eight bytes after the text must be readable memory.
  std::uint32_t intern(const std::uint8_t* text, std::size_t size) {
    if (size > kShortBytes) return find(text, size);
    // Short texts come again and again ("N/A" for every entry): the last few are told apart by their bytes alone.
    const std::uint64_t key = short_key(text, size);
    Recent& recent = recent_[mix(key) % recent_.size()];
    if (recent.key != key) recent = {key, find(text, size)};
    return recent.id;
  }

  [[nodiscard]] std::string_view operator[](std::uint32_t id) const {
    return {bytes_.data() + begins_[id], begins_[id + 1] - begins_[id]};
  }
  [[nodiscard]] std::size_t count() const { return begins_.size() - 1; }

 private:
  static constexpr std::size_t kShortBytes = 7;

  struct Recent {
    std::uint64_t key = 0xFF;  ///< of no text: the length is in the top byte, and these bits are beyond its bytes
    std::uint32_t id = 0;
  };

  static std::uint64_t short_key(const std::uint8_t* text, std::size_t size) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text, sizeof bytes);
    return (bytes & ((std::uint64_t{1} << (8 * size)) - 1)) | std::uint64_t{size} << 56;
  }
  std::uint32_t find(const std::uint8_t* text, std::size_t size);

  std::vector<char> bytes_;
  std::vector<std::size_t> begins_ = {0};  // and the end of the last
  IdIndex index_;
  std::array<Recent, 64> recent_;
};

}  // namespace tidemark::pytorch
