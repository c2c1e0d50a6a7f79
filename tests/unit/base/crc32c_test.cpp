#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace tidemark {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Vectors of RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(Crc32c, MatchesThePublishedVectors) {
  std::array<std::byte, 32> buffer{};
  EXPECT_EQ(crc32c(buffer), 0x8A9136AAU);
  buffer.fill(std::byte{0xFF});
  EXPECT_EQ(crc32c(buffer), 0x62A8AB43U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
}

TEST(Crc32c, ContinuesFromASeed) {
  EXPECT_EQ(crc32c(bytes_of("6789"), crc32c(bytes_of("12345"))), 0xE3069283U);
}

}  // namespace
}  // namespace tidemark
