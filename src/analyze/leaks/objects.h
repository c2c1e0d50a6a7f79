// Groups leaks by the object that keeps their blocks: a retained autograd graph is one finding, regardless of the
// number of call sites that allocated its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/phase_runs.h"
#include "analyze/leaks/growth.h"
#include "base/enum_names.h"
#include "base/ids.h"
#include "store/store.h"

namespace tidemark {

/// Common mistakes, each recognized by the object that keeps the memory.
enum class UsualMistake : std::uint8_t {
  none,                  ///< no match
  losses_with_graph,     ///< losses kept with the autograd graphs that they end
  metrics_not_detached,  ///< outputs, scores or other metrics that keep their graph
  tensors_with_graph,    ///< other tensors that keep their graph: in a list, a hook, or a state passed from step to
                         ///< step
  capturing_hook,        ///< a hook that keeps the tensors that it is called with
  repeated_hook,         ///< a hook that is registered again and again, each time with tensors of its own
  unbounded_cache,       ///< a dictionary or functools.lru_cache that never forgets
  growing_container,     ///< a list, dictionary, set or deque that only grows
};
inline constexpr EnumName<UsualMistake> kUsualMistakeNames[] = {
    {UsualMistake::none, "none"},
    {UsualMistake::losses_with_graph, "losses_with_graph"},
    {UsualMistake::metrics_not_detached, "metrics_not_detached"},
    {UsualMistake::tensors_with_graph, "tensors_with_graph"},
    {UsualMistake::capturing_hook, "capturing_hook"},
    {UsualMistake::repeated_hook, "repeated_hook"},
    {UsualMistake::unbounded_cache, "unbounded_cache"},
    {UsualMistake::growing_container, "growing_container"}};
[[nodiscard]] constexpr std::string_view name_of(UsualMistake mistake) {
  return name_in(kUsualMistakeNames, mistake);
}

/// Blocks held of one forward pass. Forward passes with only inputs in between count as one.
struct HeldPass {
  BlockId last;                        ///< the one that was made last
  BlockId graph_end;                   ///< the activation with which the last autograd node was created
  std::uint64_t held_bytes = 0;        ///< of activations
  std::uint64_t activation_bytes = 0;  ///< total of those allocated up to `last`, held or not
  std::uint64_t first_sequence = 0;    ///< of the held activations: the autograd node that would be made next
  std::uint64_t last_sequence = 0;
};
using HeldPasses = std::map<std::uint32_t, HeldPass>;  ///< by ForwardPasses::pass_of()

/// The store and the attribution must outlive it.
class ForwardPasses {
 public:
  ForwardPasses(const Store& store, const Attribution& attribution, std::size_t device)
      : store_(store), attribution_(attribution), device_(device), spans_(pass_spans(attribution.phases)) {}

  [[nodiscard]] bool is_activation(BlockId block) const {
    return attribution_.blocks[block.value].category == Category::activation;
  }
  /// Whether the block is only useful to a forward pass: an activation, or an input of the data phase. Other inputs are
  /// long-lived blocks from outside of all phases, which a program may keep for any reason.
  [[nodiscard]] bool is_of_passes(BlockId block) const {
    return is_activation(block) || attribution_.blocks[block.value].phase == Phase::data;
  }
  /// A number, in order of time: for an activation, the pass that made it; for an input, that pass or the next. nullopt
  /// for other blocks.
  [[nodiscard]] std::optional<std::uint32_t> pass_of(BlockId block) const;

  /// Adds a block that is held.
  void add_held(BlockId block, HeldPasses& passes) const;
  /// After all that are held: sets HeldPass::activation_bytes.
  void add_activations(HeldPasses& passes) const;

  /// Whether the held blocks are autograd graphs, in most of the passes. Memory kept on purpose (outputs, hidden
  /// states) is less than half of the activations, or no autograd node was created. If the recording has no node
  /// numbers, a backward pass that comes next is the evidence for a graph.
  [[nodiscard]] bool are_graphs(const HeldPasses& passes) const;
  /// The usual last block of the passes: in graphs the last tensor created with a node, if the recording has node
  /// numbers, else the last allocation. A pass without a backward pass after it extends into the next input.
  struct UsualLast {
    StackId stack;
    bool is_scalar = false;  ///< all of these are as small as blocks of one number
  };
  [[nodiscard]] UsualLast usual_last(const HeldPasses& passes, bool are_graphs) const;

 private:
  const Store& store_;
  const Attribution& attribution_;
  std::size_t device_;
  std::vector<PhaseSpan> spans_;
};

enum class LeakObjectKind : std::uint8_t {
  call_site,       ///< a single leak without a known object
  forward_pass,    ///< activations, and perhaps inputs, of the same forward passes
  autograd_graph,  ///< an autograd graph; most of the memory that forward passes left for their backward passes
};
inline constexpr EnumName<LeakObjectKind> kLeakObjectKindNames[] = {{LeakObjectKind::call_site, "call_site"},
                                                                    {LeakObjectKind::forward_pass, "forward_pass"},
                                                                    {LeakObjectKind::autograd_graph, "autograd_graph"}};
[[nodiscard]] constexpr std::string_view name_of(LeakObjectKind kind) {
  return name_in(kLeakObjectKindNames, kind);
}

/// Facts about a leaking source; views must outlive the call.
struct LeakEvidence {
  bool keeps_graphs = false;  ///< the kept blocks are most of what forward passes left for their backward passes
  /// References from a root to the kept object, in the notation of docs/holders.md: "__main__.losses[12].grad_fn".
  std::span<const std::string> chains;
  std::span<const std::string> functions;  ///< of the stack that allocated it, innermost first
  bool ends_in_scalar = false;             ///< of a graph: GrownObject::ends_in_scalar
};

struct MatchedMistake {
  UsualMistake mistake = UsualMistake::none;
  Confidence confidence =
      Confidence::unknown;  ///< exact: a reference shows it; estimated: from the stack or the kind of object
  std::string holder = {};  ///< holder_of() the reference: "__main__.losses"; empty unless exact
};

/// The object that a chain of references names as the holder of a tensor, without the position in it: "__main__.losses"
/// of "__main__.losses[12].grad_fn → (1 node) → AddmmBackward0._saved_mat1".
[[nodiscard]] std::string holder_of(std::string_view chain);

/// Chains take precedence; the first one that matches decides.
/// Whether one of a storage's chains goes through an autograd graph.
[[nodiscard]] bool is_held_by_graph(const std::vector<std::string>& chains);

[[nodiscard]] MatchedMistake match_usual_mistake(const LeakEvidence& evidence);

/// Leaks of one device that grow together.
struct GrownObject {
  LeakObjectKind kind = LeakObjectKind::call_site;
  std::vector<GroupGrowth> leaks;       ///< fastest first
  Growth growth;                        ///< of all of them
  bool ends_in_scalar = false;          ///< in most of the forward passes, the last block is a single number, such as a
                                        ///< loss
  StackId last;                         ///< the allocation of the last block in most of the forward passes
  std::vector<StackId> forward_stacks;  ///< of the leaks of activations
  bool keeps_graphs = false;            ///< its blocks are most of the memory that the forward passes left for their
                                        ///< backward passes: an autograd graph, or a call site that holds one alone
  bool perhaps_input = false;  ///< for a call site: it grows with the forward passes of another object, which may keep
                               ///< it, if it is an input of them
};

/// Two leaks belong to one object if at least half of the blocks of the rarer one belong to the forward passes of the
/// other: activations to the pass in which they were made, inputs of the data phase to that pass or the next. Without
/// attribution, or if only inputs grow, each leak is an object. `leaks`: of one device, an index into Store::devices.
[[nodiscard]] std::vector<GrownObject> join_leaks(const Store& store, const Attribution* attribution,
                                                  std::size_t device, std::uint32_t boundaries, std::uint32_t warmup,
                                                  std::vector<GroupGrowth> leaks);

}  // namespace tidemark
