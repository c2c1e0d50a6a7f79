// The JSON of a safetensors header, read strictly and without a tree of values: it may have 100 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/safetensors.h"

namespace tidemark {

/// A tensor as the header has it.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct HeaderEntries {
  std::vector<HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

/// Fails for what is not UTF-8, has a key twice, or anything but what a header has.
Result<HeaderEntries> parse_header_json(std::span<const std::byte> header, const std::string& file);

/// Takes the entry's name and shape. Fails where its type is not known, or its bytes are not what type and shape say.
Result<StoredTensor> stored_tensor(HeaderEntry& entry, const std::string& file);

}  // namespace tidemark
