// The part of libtorch_cpu with autograd's engine, with the same mangled names and the same layout of a node: PyTorch
// 2.15's, or with FAKES_SIGNED_TOTALS 1.13's.
#pragma once

#include <cstdint>
#include <memory>

namespace at {

namespace sequence_number {
std::uint64_t peek();
}

struct RecordFunction {
  static std::uint64_t currentThreadId();
};

}  // namespace at

namespace torch::autograd {

struct GraphTask {};
struct InputBuffer {};
struct ReadyQueue {};

#ifdef FAKES_SIGNED_TOTALS
struct Node : std::enable_shared_from_this<Node> {
  virtual ~Node() = default;
#else
struct Counted {  // c10::intrusive_ptr_target
  virtual ~Counted() = default;
  std::uint64_t counts = 0x1'0000'0001;
};
struct Node : Counted {
#endif
  Node();

  std::uint64_t sequence_nr;
  std::uint64_t topological_nr = 0;
  bool has_parent = false;
  std::uint64_t thread_id;
  std::uint64_t others[12] = {};
};

struct Engine {
  void evaluate_function(std::shared_ptr<GraphTask>& task, Node* node, InputBuffer& inputs,
                         const std::shared_ptr<ReadyQueue>& queue);
};

}  // namespace torch::autograd

// For the test program.
extern "C" {

enum FakesNode : int {
  kFakesAddmm,           ///< torch::autograd::generated::AddmmBackward0
  kFakesAccumulateGrad,  ///< torch::autograd::AccumulateGrad, with the greatest number
  kFakesTemplate,        ///< torch::autograd::CppNode<Twice>
  kFakesPrivate,         ///< (anonymous namespace)::PrivateBackward
  kFakesScale,           ///< of Python: ScaleBackward
  kFakesShift,           ///< of Python: ShiftBackward
  kFakesStrange,         ///< not a node of PyTorch's: without a thread
  kFakesKinds,
};

/// A node made by the calling thread, with its number; `thread`, unless 0, is recorded as its thread.
void* fakes_make_node(int kind, std::uint64_t thread, std::uint64_t* number);
/// Evaluates it and deletes it, whether `action` returns or not.
void fakes_evaluate(void* node, void (*action)(void*), void* argument);
std::uint64_t fakes_next_number();
}
