// The headers of safetensors files (https://huggingface.co/docs/safetensors): names, types and shapes of tensors, whose
// values are never read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

struct StoredTensor {
  std::string name;
  std::string dtype;  ///< PyTorch's name: "bfloat16"; for types without one, the file's: "F4"
  std::vector<std::uint64_t> shape;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::size_t file = 0;  ///< Checkpoint::files
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            ///< in the header's order
  std::map<std::string, std::string> metadata;  ///< written by the creator: "format": "pt"
};

/// The longest header that the safetensors library reads.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

/// `header`: the JSON after the first eight bytes. `data_bytes`: size of the rest of the file. Fails, naming the file
/// and the tensor, for files that the safetensors library also rejects: invalid JSON, or with a duplicate name, and
/// tensors that do not lie one after the other to the end of the data.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> header, std::uint64_t data_bytes,
                                                   const std::string& file);

/// Length of the header of a file of `file_bytes` bytes, which begins with `start`: at least 8 bytes of it, if it has
/// as many. Fails, naming the apparent format, for what cannot be a safetensors file.
Result<std::uint64_t> safetensors_header_bytes(std::span<const std::byte> start, std::uint64_t file_bytes,
                                               const std::string& file);

/// Both, for a file.
Result<SafetensorsHeader> read_safetensors(const std::string& path);

}  // namespace tidemark
