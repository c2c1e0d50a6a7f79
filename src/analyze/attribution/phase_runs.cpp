#include "analyze/attribution/phase_runs.h"

#include <cstddef>
#include <unordered_map>

#include "analyze/attribution/forward_sides.h"

namespace tidemark {

namespace {

bool is_backward(Phase phase) {
  return phase == Phase::backward || phase == Phase::recomputation;
}

// Neither a pass of the model nor a step of its optimizer.
bool is_between(Phase phase) {
  return phase == Phase::data || phase == Phase::other;
}

// Activity of one thread, including autograd's threads that work for it.
class ThreadPasses {
 public:
  ThreadPasses(PhaseRuns& all, bool has_sequences) : all_(all), has_sequences_(has_sequences) {}

  // A block is born. Returns its run.
  std::uint32_t add(Phase phase, std::uint32_t change, std::uint64_t sequence) {
    made_nodes_ = false;
    if (!is_backward(phase)) {
      made_nodes_ = run_ != Pass::kNone && sequence > sequence_;
      sequence_ = sequence;
    }
    const bool inputs_end = phase == Phase::other && made_nodes_ && !of_graph_;
    if (run_ == Pass::kNone || all_.runs[run_].phase != phase || inputs_end) begin_run(phase, change);
    return run_;
  }

  /// Between the last block and the one before it, autograd's nodes.
  [[nodiscard]] bool made_nodes() const { return made_nodes_; }

  // End of the recording. Code that created autograd nodes after the last call of a module belongs to its forward pass:
  // memory ran out in the loss.
  void finish() {
    std::size_t last = stretch_.size();
    while (last > 0 && all_.runs[stretch_[last - 1].run].phase != Phase::forward) --last;
    if (!has_sequences_ || last == stretch_.size()) return;
    const std::uint32_t pass = all_.runs[stretch_[last == 0 ? 0 : last - 1].run].pass;
    for (std::size_t part = last; part < stretch_.size(); ++part) {
      PhaseRun& run = all_.runs[stretch_[part].run];
      run.phase = Phase::forward;
      run.pass = pass;
    }
    all_.passes[pass] = {Phase::forward, Pass::kNone, Pass::kNone};
  }

 private:
  struct Part {
    std::uint32_t run = 0;
    bool of_graph = false;  // by its modules, or by the autograd nodes that it made
  };

  void begin_run(Phase phase, std::uint32_t change) {
    const Phase before = run_ == Pass::kNone ? Phase::other : all_.runs[run_].phase;
    if (run_ != Pass::kNone) all_.runs[run_].end_change = change;
    const bool same_pass = is_backward(phase) && is_backward(before);
    if (is_backward(phase) && !same_pass) join_forward_pass(change);
    if (!same_pass) begin_pass(is_backward(phase) ? Phase::backward : phase, change);
    run_ = static_cast<std::uint32_t>(all_.runs.size());
    all_.runs.push_back({phase, Pass::kNone, pass_});
    of_graph_ = phase == Phase::forward || (phase == Phase::other && made_nodes_);
    if (of_graph_ || (phase == Phase::other && !has_sequences_ && !stretch_.empty())) {
      stretch_.push_back({run_, of_graph_});
    } else if (phase != Phase::other) {
      stretch_.clear();
    }
  }

  void begin_pass(Phase phase, std::uint32_t change) {
    const auto pass = static_cast<std::uint32_t>(all_.passes.size());
    if (pass_ != Pass::kNone) {
      all_.passes[pass_].end_change = change;
      all_.passes[pass_].next = pass;
    }
    all_.passes.push_back({phase, Pass::kNone, Pass::kNone});
    pass_ = pass;
  }

  // Start of a backward pass: the code that it differentiates is one pass. If the code that created autograd nodes is
  // unknown, it is the code after the last call of a module.
  void join_forward_pass(std::uint32_t change) {
    if (stretch_.empty()) return;
    pass_ = all_.runs[stretch_.front().run].pass;
    std::size_t last_of_graph = 0;
    for (std::size_t part = 0; part < stretch_.size(); ++part) {
      if (stretch_[part].of_graph) last_of_graph = part;
    }
    for (std::size_t part = 0; part < stretch_.size(); ++part) {
      if (!stretch_[part].of_graph && part < last_of_graph) continue;
      PhaseRun& run = all_.runs[stretch_[part].run];
      all_.passes[run.pass].end_change = change;  // passes without remaining runs
      all_.passes[run.pass].next = static_cast<std::uint32_t>(all_.passes.size());
      run.phase = Phase::forward;
      run.pass = pass_;
    }
    all_.passes[pass_].phase = Phase::forward;
  }

  PhaseRuns& all_;
  bool has_sequences_;
  std::uint32_t run_ = Pass::kNone;
  std::uint32_t pass_ = Pass::kNone;
  std::vector<Part> stretch_;  // since the last pass of another kind, from the start of the forward pass
  std::uint64_t sequence_ = 0;
  bool of_graph_ = false;  // the current run
  bool made_nodes_ = false;
};

}  // namespace

PhaseRuns find_phase_runs(const Store& store, const std::vector<Phase>& phases) {
  PhaseRuns all;
  const Blocks& blocks = store.blocks;
  const bool has_sequences = !blocks.sequence.empty();
  std::vector<ThreadPasses> threads;
  std::unordered_map<ThreadId, std::size_t> threads_by_id;
  HomeThreads homes(store);
  all.of_block.reserve(blocks.count());
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const ThreadId home = homes.add(block, phases[block]);
    const auto [entry, is_new] = threads_by_id.try_emplace(home, threads.size());
    if (is_new) threads.emplace_back(all, has_sequences);
    const std::uint64_t sequence = has_sequences ? blocks.sequence[block] : 0;
    ThreadPasses& thread = threads[entry->second];
    all.of_block.push_back(thread.add(phases[block], blocks.birth_change[block], sequence));
    all.made_nodes.push_back(thread.made_nodes());
  }
  for (ThreadPasses& thread : threads) thread.finish();
  return all;
}

std::vector<PhaseSpan> phase_spans(const Store& store, const PhaseRuns& runs) {
  std::vector<PhaseSpan> spans;
  std::uint32_t current = Pass::kNone;  // index into PhaseRuns::runs
  for (std::size_t block = 0; block < runs.of_block.size(); ++block) {
    const std::uint32_t run = runs.of_block[block];
    if (run == current) continue;
    const std::uint32_t birth = store.blocks.birth_change[block];
    const Phase phase = runs.runs[run].phase;
    if (is_between(phase) && current != Pass::kNone && !is_between(runs.runs[current].phase) &&
        runs.runs[current].end_change != birth) {
      continue;  // of another thread
    }
    current = run;
    if (!spans.empty() && spans.back().phase == phase) continue;
    if (!spans.empty()) spans.back().to = birth;
    spans.push_back({phase, birth, birth});
  }
  if (!spans.empty()) spans.back().to = std::uint64_t{store.blocks.birth_change.back()} + 1;
  return spans;
}

std::vector<PhaseSpan> pass_spans(const std::vector<PhaseSpan>& spans) {
  std::vector<PhaseSpan> passes;
  for (const PhaseSpan& span : spans) {
    const Phase phase = is_backward(span.phase) ? Phase::backward : span.phase;
    if (passes.empty() ? is_between(phase) : is_between(phase) || passes.back().phase == phase) {
      if (!passes.empty()) passes.back().to = span.to;
    } else {
      passes.push_back({phase, span.from, span.to});
    }
  }
  return passes;
}

Phase phase_of(const Definitions& definitions, const StackFacts& stack, AutogradNodeId node, ThreadId thread) {
  const bool in_backward = node.valid() || is_autograd_thread(definitions, thread);
  return in_backward ? stack.phase_in_node : stack.phase;
}

std::vector<Phase> phases_of_blocks(const Store& store, const std::vector<StackFacts>& stacks) {
  const Blocks& blocks = store.blocks;
  std::vector<Phase> phases;
  phases.reserve(blocks.count());
  bool after_forward = false;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const StackId stack = blocks.stack[block];
    const AutogradNodeId node = blocks.node.empty() ? AutogradNodeId{} : blocks.node[block];
    const StackFacts facts = stack.value < stacks.size() ? stacks[stack.value] : StackFacts{};
    Phase phase = phase_of(store.definitions, facts, node, blocks.thread[block]);
    if (!stack.valid() && !blocks.thread[block].valid() && after_forward) phase = Phase::backward;
    if (phase != Phase::other) after_forward = phase != Phase::optimizer && phase != Phase::data;
    phases.push_back(phase);
  }
  return phases;
}

}  // namespace tidemark
