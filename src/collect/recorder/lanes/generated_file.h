// A Python file that torch.compile generated: the source of each of its lines.
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
  /// By number of an allocating line: the graph nodes that its buffer is for, "x, linear_1". Kernels for the CPU have
  /// no such comment.
  std::unordered_map<std::uint32_t, std::string> nodes;
};

/// `text`: the whole file, from any source, not trusted.
[[nodiscard]] GeneratedComments generated_comments(std::string_view text);

/// The content of a regular file; std::nullopt if it cannot be read or is larger than any generated file.
[[nodiscard]] std::optional<std::string> read_generated_file(const std::string& path);

/// A function of the program in the stack of a compiled operation.
struct SourceFrame {
  std::string file;
  std::string function;
  std::uint32_t line = 0;

  bool operator==(const SourceFrame&) const = default;
};

/// The frames of a stack trace as Python prints it, outermost first: lines '  File "model.py", line 31, in forward'.
/// Only the innermost frames if there are very many.
[[nodiscard]] std::vector<SourceFrame> parse_stack_trace(std::string_view text);

class GeneratedFile {
 public:
  explicit GeneratedFile(GeneratedComments comments) : comments_(std::move(comments)) {}

  /// The lines from `line` up to the next added line come from stack trace number `trace`, counted from 1 in the order
  /// of addition. 0: from no operation of the program, such as copies of inputs in another layout.
  void add(std::uint32_t line, std::uint32_t trace) { trace_at_[line] = trace; }
  void add_trace(std::string_view text) { traces_.push_back(parse_stack_trace(text)); }
  [[nodiscard]] std::size_t trace_count() const { return traces_.size(); }

  [[nodiscard]] CompiledGraph graph() const { return comments_.graph; }
  /// The source frames of a line, outermost first. A line without an operation has those of the next operation, which
  /// it prepares, or of the last one. Empty if unknown.
  [[nodiscard]] const std::vector<SourceFrame>& sources(std::uint32_t line) const;
  /// Graph nodes of an allocating line; empty if unknown.
  [[nodiscard]] std::string_view nodes(std::uint32_t line) const;

 private:
  GeneratedComments comments_;
  std::map<std::uint32_t, std::uint32_t> trace_at_;
  std::vector<std::vector<SourceFrame>> traces_;
};

}  // namespace tidemark
