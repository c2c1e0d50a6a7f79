#include "import/pytorch_snapshot/pickle/value_tables.h"

#include <cstring>

namespace tidemark::pytorch {
namespace {

std::uint64_t load(const std::uint8_t* bytes, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  return value;
}

std::uint64_t hash_of(const std::uint8_t* text, std::size_t size) {
  std::uint64_t hash = size;
  for (; size >= 8; text += 8, size -= 8) hash = mix(hash ^ load(text, 8));
  return mix(hash ^ load(text, size));
}

}  // namespace

TextTable::TextTable(std::span<const std::string_view> known) {
  for (const std::string_view text : known) find(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

std::uint32_t TextTable::find(const std::uint8_t* text, std::size_t size) {
  const std::string_view wanted(reinterpret_cast<const char*>(text), size);
  return index_.find_or_make(
      hash_of(text, size), [&](std::uint32_t id) { return (*this)[id] == wanted; },
      [&] {
        bytes_.insert(bytes_.end(), wanted.begin(), wanted.end());
        begins_.push_back(bytes_.size());
        return static_cast<std::uint32_t>(count() - 1);
      });
}

}  // namespace tidemark::pytorch
