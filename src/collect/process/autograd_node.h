// Reads nodes of autograd's graphs (torch::autograd::Node) from memory, without calling them.
#pragma once

#include <cstdint>

namespace tidemark::process {

struct NodeFields {
  std::uint64_t class_key;  ///< equal for nodes of one class
  std::uint64_t sequence;   ///< Node::sequence_nr(): the greatest possible for AccumulateGrad
  std::uint64_t thread;     ///< at::RecordFunction::currentThreadId() of the thread that made it
};

/// False if the layout does not match PyTorch 1.13 to 2.15. `node` is being evaluated.
bool read_node(const void* node, NodeFields* out) noexcept;

struct NodeClass {
  const char* name;  ///< as in std::type_info, without end-of-line marks; "" if the library has none
  bool python;       ///< whether `name` is the Python class of a custom autograd.Function
};

/// The class of a node that was read. `name` lives as long as the node. The first node of a custom autograd.Function
/// costs a few hundred system calls. Keeps errno.
NodeClass node_class(const void* node) noexcept;

}  // namespace tidemark::process
