// Reads the records of definitions frames into the tables.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "trace/definitions.h"

namespace tidemark {

/// Not thread-safe.
class DefinitionDecoder {
 public:
  /// Adds the payload's records to `definitions`, which is the same object in every call. `payload` must have
  /// Frame::kPadding readable bytes behind it. The error says what is wrong with it, without file and offset; the
  /// records before the wrong one have been added then.
  Result<void> decode(std::span<const std::uint8_t> payload, Definitions& definitions);

  /// Losses of the same kind and text add up.
  void add_loss(Loss loss, Definitions& definitions);

  /// Records of a kind this code does not know.
  [[nodiscard]] std::uint64_t unknown_records() const { return unknown_records_; }

 private:
  std::map<std::pair<Loss::Kind, std::string>, std::size_t> losses_;
  std::uint64_t unknown_records_ = 0;
};

}  // namespace tidemark
