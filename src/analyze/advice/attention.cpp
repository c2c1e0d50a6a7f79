// Attention without a fused kernel: the matrices of queries by keys around its softmax.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

/// Maximum number of blocks examined before a gradient of softmax: of a dropout, a mask, a copy in other precision.
constexpr std::size_t kMaxBetween = 8;

/// A mask has one byte for each element; a copy may have twice or half of the precision.
bool has_as_many_elements(std::uint64_t bytes, std::uint64_t other) {
  for (const std::uint64_t factor : {1U, 2U, 4U}) {
    if (bytes == other * factor || other == bytes * factor) return true;
  }
  return false;
}

class Matrices {
 public:
  explicit Matrices(const Subject& subject)
      : subject_(subject), blocks_(subject.store.blocks), definitions_(subject.store.definitions) {}

  std::vector<EarlierFree> find() {
    for (std::size_t n = 0; n < subject_.blocks.size(); ++n) {
      if (is_gradient(n)) {
        results_.emplace(subject_.owner(subject_.blocks[n]).forward_stack, bytes(n));
        add_run(n);
      }
    }
    for (std::size_t n = 0; n < subject_.blocks.size(); ++n) {
      if (is_result(n)) add_run(n);
    }
    return std::move(frees_);
  }

 private:
  [[nodiscard]] std::uint64_t bytes(std::size_t n) const { return blocks_.size[subject_.blocks[n].value]; }
  [[nodiscard]] const Owner& owner(std::size_t n) const { return subject_.owner(subject_.blocks[n]); }
  [[nodiscard]] std::string_view node(std::size_t n) const {
    const AutogradNodeId id = blocks_.node.empty() ? AutogradNodeId{} : blocks_.node[subject_.blocks[n].value];
    if (id.value >= definitions_.autograd_nodes.size()) return {};
    return definitions_.text(definitions_.autograd_nodes[id.value].type);
  }

  // The gradient of a softmax whose result is multiplied by the values. A loss has a log_softmax, or is not multiplied.
  [[nodiscard]] bool is_gradient(std::size_t n) const {
    const std::string_view softmax = node(n);
    if (softmax.find("SoftmaxBackward") == std::string_view::npos ||
        softmax.find("LogSoftmaxBackward") != std::string_view::npos || !owner(n).forward_stack.valid()) {
      return false;
    }
    for (std::size_t before = n - std::min(n, kMaxBetween); before < n; ++before) {
      if (has_as_many_elements(bytes(before), bytes(n)) && node(before).find("BmmBackward") != std::string_view::npos) {
        return true;
      }
    }
    return false;
  }

  // Without a backward pass as evidence: code of attention that calls torch.nn.functional.softmax().
  [[nodiscard]] bool is_result(std::size_t n) const {
    const StackId stack = blocks_.stack[subject_.blocks[n].value];
    if (!stack.valid() || stack.value >= definitions_.stacks.size() || owner(n).phase == Phase::backward) return false;
    if (results_.contains({stack, bytes(n)})) return true;
    const LocationId location = definitions_.stacks[stack.value].location;
    return owner(n).component == Component::attention && location.value < definitions_.locations.size() &&
           definitions_.text(definitions_.locations[location.value].function) == "softmax";
  }

  // Consecutive blocks of the module with as many elements as the result, or the gradient, of softmax.
  void add_run(std::size_t at) {
    const auto belongs = [&](std::size_t n) {
      return owner(n).module == owner(at).module && owner(n).phase == owner(at).phase &&
             has_as_many_elements(bytes(n), bytes(at));
    };
    std::size_t first = at;
    while (first > 0 && belongs(first - 1)) --first;
    for (std::size_t n = first; n < subject_.blocks.size() && belongs(n); ++n) {
      if (added_.insert(n).second) frees_.push_back(never_there(subject_.store, subject_.blocks[n]));
    }
  }

  const Subject& subject_;
  const Blocks& blocks_;
  const Definitions& definitions_;
  std::set<std::pair<StackId, std::uint64_t>> results_;  // stack and bytes of softmax results in forward passes
  std::set<std::size_t> added_;                          // indices into Subject::blocks
  std::vector<EarlierFree> frees_;
};

}  // namespace

std::vector<EarlierFree> attention_matrices(const Subject& subject) {
  return Matrices(subject).find();
}

}  // namespace tidemark::advice
