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
  /// Adds the payload's records to `definitions`, which is the same object in every call. `payload` must have
  /// Frame::kPadding readable bytes behind it. The error says what is wrong with it, without file and offset; the
  /// records before the wrong one have been added then.
  Result<void> decode(std::span<const std::uint8_t> payload, Definitions& definitions,
                      const RecordObserver& observe = {});

  /// Records of a kind this code does not know.
  [[nodiscard]] std::uint64_t unknown_records() const { return unknown_records_; }

 private:
  std::uint64_t unknown_records_ = 0;
};

}  // namespace tidemark
