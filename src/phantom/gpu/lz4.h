// LZ4 blocks, with which NVIDIA's compiler packed machine code by default until CUDA 12.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::phantom {

/// Decompresses one block (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md) that is `size` bytes long when
/// decompressed. None for what is not such a block.
[[nodiscard]] std::optional<std::string> decompress_lz4(std::string_view block, std::size_t size);

}  // namespace tidemark::phantom
