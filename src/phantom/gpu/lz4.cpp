#include "phantom/gpu/lz4.h"

#include <cstdint>

#include "phantom/gpu/bytes.h"

namespace tidemark::phantom {
namespace {

constexpr std::size_t kMore = 15;  // of a length of four bits: bytes follow that are added to it
constexpr std::size_t kSmallestMatch = 4;

// What follows a length of four bits: bytes of 255, and one below.
bool read_length(std::string_view block, std::size_t& at, std::size_t& length) {
  if (length != kMore) return true;
  for (std::uint8_t byte = 255; byte == 255;) {
    if (at >= block.size()) return false;
    byte = static_cast<std::uint8_t>(block[at++]);
    length += byte;
  }
  return true;
}

}  // namespace

std::optional<std::string> decompress_lz4(std::string_view block, std::size_t size) {
  std::string out;
  // No byte stands for more than 255: what a size says without so many is not reserved.
  if (size / 255 > block.size()) return std::nullopt;
  out.reserve(size);
  for (std::size_t at = 0; at < block.size();) {
    const auto token = static_cast<std::uint8_t>(block[at++]);
    std::size_t literals = token >> 4;
    if (!read_length(block, at, literals) || literals > block.size() - at || literals > size - out.size())
      return std::nullopt;
    out.append(block, at, literals);
    at += literals;
    if (at == block.size()) break;  // the last sequence has no match

    const auto distance = record_at<std::uint16_t>(block, at);
    std::size_t match = token & kMore;
    at += sizeof(std::uint16_t);
    if (!distance || *distance == 0 || *distance > out.size() || !read_length(block, at, match)) return std::nullopt;
    match += kSmallestMatch;
    if (match > size - out.size()) return std::nullopt;
    for (; match != 0; --match) out.push_back(out[out.size() - *distance]);  // may read what it just wrote
  }
  if (out.size() != size) return std::nullopt;
  return out;
}

}  // namespace tidemark::phantom
