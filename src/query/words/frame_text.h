// Frames as one line of printable text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/symbols.h"

namespace tidemark {

/// The part of a path that tells files apart: what is below site-packages or lib/pythonX.Y, else the last two
/// components.
[[nodiscard]] std::string short_path(const std::string& path);

/// A native function without its parameters: "at::native::empty_cpu(...)" as "at::native::empty_cpu".
[[nodiscard]] std::string short_function(const std::string& function);

/// A Python function without those around it: "make.<locals>.wrapper" as "wrapper".
[[nodiscard]] std::string local_name(const std::string& function);

/// Of what torch.compile generated, and of the lines it was made from: " [compiled backward]", with the graph's nodes
/// where they are known: " [compiled forward: x, linear_1]". Otherwise empty.
[[nodiscard]] std::string compiled_text(const FrameName& frame);

/// What other tools are told of a function: its whole name, native ones without their parameters, and compiled_text().
[[nodiscard]] std::string function_text(const FrameName& frame);

/// How much of a frame's file is written.
enum class FileDetail : std::uint8_t {
  path,       ///< "LlamaMLP.forward (transformers/models/llama/modeling_llama.py:155)"
  ends,       ///< "LlamaMLP.forward (transformers/…/modeling_llama.py:155)"
  name,       ///< "LlamaMLP.forward (modeling_llama.py:155)"
  line_only,  ///< "LlamaMLP.forward:155"
};

/// "forward (llama/model.py:31)"; the call of a module: "model.layers.3.mlp"; native: "at::native::empty_cpu
/// (libtorch_cpu.so)". `line`: whether Python has its line.
[[nodiscard]] std::string frame_text(const FrameName& frame, FileDetail detail = FileDetail::path, bool line = true);

/// Its file and line: "llama/model.py:31"; empty without a file.
[[nodiscard]] std::string place_in_file(const FrameName& frame, FileDetail detail);

/// The same in at most `width` columns, with as much of the file as fits; 0 = unlimited.
[[nodiscard]] std::string fit_frame(const FrameName& frame, std::size_t width);

}  // namespace tidemark
