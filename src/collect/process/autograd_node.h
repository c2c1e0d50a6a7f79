// Reads nodes of autograd's graphs (torch::autograd::Node) where they lie, without calling them.
#pragma once

#include <cstdint>

namespace tidemark::process {

struct NodeFields {
  std::uint64_t class_key;  ///< nodes of one class have the same
  std::uint64_t sequence;   ///< Node::sequence_nr(): the greatest possible for AccumulateGrad
  std::uint64_t thread;     ///< at::RecordFunction::currentThreadId() of the thread that made it
};

/// False for one that does not look as those of PyTorch 1.13 to 2.15 do. `node` is one that is being evaluated.
bool read_node(const void* node, NodeFields* out) noexcept;

struct NodeClass {
  const char* name;  ///< as std::type_info has it, without end-of-line marks; "" where the library has none
  bool python;       ///< the Python class of a custom autograd.Function, by its own name
};

/// The class of a node that was read. `name` lives as long as the node. The first node of a custom autograd.Function
/// costs some hundred system calls. Keeps errno.
NodeClass node_class(const void* node) noexcept;

}  // namespace tidemark::process
