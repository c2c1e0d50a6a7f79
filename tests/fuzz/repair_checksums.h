// Corrects the checksums of a mutated recording, because mutations do not get past them by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "trace/format.h"
#include "trace/varint.h"

namespace tidemark::testing {

inline void repair_checksums(std::vector<std::byte>& bytes) {
  if (bytes.size() < format::kFileHeaderBytes) return;
  const std::span<std::byte> all(bytes);
  store_le(bytes.data() + 12, crc32c(all.first(12)));
  std::size_t at = format::kFileHeaderBytes;
  while (bytes.size() - at >= format::kFrameHeaderBytes) {
    const auto stored = load_le<std::uint32_t>(bytes.data() + at + 4);
    if (stored > bytes.size() - at - format::kFrameHeaderBytes) return;
    const auto payload = all.subspan(at + format::kFrameHeaderBytes, stored);
    store_le(bytes.data() + at + 12, crc32c(payload, crc32c(all.subspan(at, 12))));
    at += format::kFrameHeaderBytes + stored;
  }
}

}  // namespace tidemark::testing
