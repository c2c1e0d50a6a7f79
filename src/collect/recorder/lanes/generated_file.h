// A Python file that torch.compile generated: what its lines were made from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

/// A function of the program on the way to an operation that was compiled.
struct SourceFrame {
  std::string file;
  std::string function;
  std::uint32_t line = 0;

  bool operator==(const SourceFrame&) const = default;
};

/// The frames of a stack trace as Python prints it, outermost first: of lines '  File "model.py", line 31, in forward'.
/// The innermost ones where there are very many.
[[nodiscard]] std::vector<SourceFrame> parse_stack_trace(std::string_view text);

class GeneratedFile {
 public:
  explicit GeneratedFile(GeneratedComments comments) : comments_(std::move(comments)) {}

  /// From `line` on, up to where another one is added: made from what has this stack trace, which has the number of
  /// its addition, from 1. 0: from no operation of the program, such as copies of inputs in another layout.
  void add(std::uint32_t line, std::uint32_t trace) { trace_at_[line] = trace; }
  void add_trace(std::string_view text) { traces_.push_back(parse_stack_trace(text)); }
  [[nodiscard]] std::size_t trace_count() const { return traces_.size(); }

  [[nodiscard]] CompiledGraph graph() const { return comments_.graph; }
  /// What the line was made from, outermost first; of no operation of its own: the next one, which it prepares, or
  /// the last. Empty where that is not known.
  [[nodiscard]] const std::vector<SourceFrame>& sources(std::uint32_t line) const;
  /// Nodes of the graph that an allocating line stands for; empty where it is not known.
  [[nodiscard]] std::string_view nodes(std::uint32_t line) const;

 private:
  GeneratedComments comments_;
  std::map<std::uint32_t, std::uint32_t> trace_at_;
  std::vector<std::vector<SourceFrame>> traces_;
};

}  // namespace tidemark
