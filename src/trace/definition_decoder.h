// Reads the records of definitions frames into the tables.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/format.h"

namespace tidemark {

/// Called after each record with its kind (perhaps an unknown one); what it defined is the last entry of its table.
using RecordObserver = std::function<void(format::RecordKind)>;

/// Not thread-safe.
class DefinitionDecoder {
 public:
  /// What the tables may take: zstd makes a thousandth of what repeats, so files of strangers could fill any memory.
  /// The definitions of recordings take 3 to 9 times their bytes in the file.
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMemoryPerStoredByte = 100;

  /// Adds the payload's records to `definitions`, which is the same object in every call. `payload` must have
  /// Frame::kPadding readable bytes behind it, and takes `stored_bytes` in the file. The error says what is wrong with
  /// it, without file and offset; the records before the wrong one have been added then.
  Result<void> decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes, Definitions& definitions,
                      const RecordObserver& observe = {});

  /// Records of a kind this code does not know.
  [[nodiscard]] std::uint64_t unknown_records() const { return unknown_records_; }

 private:
  std::uint64_t unknown_records_ = 0;
  std::uint64_t memory_used_ = 0;
  std::uint64_t memory_allowed_ = kMemoryBytes;
};

}  // namespace tidemark
