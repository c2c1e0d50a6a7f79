// CRC-32C (Castagnoli, RFC 3720 appendix B.4), as used by the trace frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark {

/// Checksum of `bytes`. Pass the result of an earlier call as `seed` to continue over more bytes. Thread-safe.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace tidemark
