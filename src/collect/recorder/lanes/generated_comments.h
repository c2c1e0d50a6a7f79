// What a Python file that torch.compile generated says of itself in its comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/definitions.h"

namespace tidemark {

struct GeneratedComments {
  CompiledGraph graph = CompiledGraph::unknown;
  /// By number of a line that allocates: the graph's nodes that its buffer is for, "x, linear_1". Kernels for the CPU
  /// have no such comment.
  std::unordered_map<std::uint32_t, std::string> nodes;
};

/// `text`: the whole file, of whatever origin.
[[nodiscard]] GeneratedComments generated_comments(std::string_view text);

/// The content of a regular file; none where it cannot be read or is larger than any that is generated.
[[nodiscard]] std::optional<std::string> read_generated_file(const std::string& path);

}  // namespace tidemark
