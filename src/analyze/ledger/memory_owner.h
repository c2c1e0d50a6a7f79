// The library that owns a block of driver memory: the library that called CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/definitions.h"

namespace tidemark {

/// The common name of a library, from the path of its file: "NCCL" for "/usr/lib/libnccl.so.2.21"; the file's name
/// without version ("libfoo") if it is not in the table.
[[nodiscard]] std::string library_name(std::string_view path);

/// Whether the file only passes calls on to the driver: the CUDA runtime, the driver itself, CUPTI, and Tidemark's
/// hooks.
[[nodiscard]] bool passes_calls_on(std::string_view path);

/// Owners by stack: the module of the innermost native frame that does not only pass calls on. Not thread-safe (it
/// caches). The Definitions must outlive it and not grow.
class MemoryOwners {
 public:
  explicit MemoryOwners(const Definitions& definitions);

  /// PyTorch's caching allocator: driver memory counts as its reserved memory.
  static constexpr std::size_t kTorchAllocator = 0;

  /// A number for the owner of the blocks of a stack.
  std::size_t of(StackId stack);
  /// As library_name(), or "unknown caller". Not safe to print. Valid until the next of().
  [[nodiscard]] const std::string& name(std::size_t owner) const { return names_[owner]; }

 private:
  [[nodiscard]] std::string find(StackId stack) const;

  const Definitions& definitions_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_map<std::uint32_t, std::size_t> by_stack_;
};

}  // namespace tidemark
