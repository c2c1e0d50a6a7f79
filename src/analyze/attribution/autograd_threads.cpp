#include "analyze/attribution/autograd_threads.h"

namespace tidemark {

bool is_autograd_thread(const Definitions& definitions, ThreadId thread) {
  return thread.value < definitions.threads.size() &&
         definitions.threads[thread.value].name.starts_with("pt_autograd_");
}

HomeThreads::HomeThreads(const Store& store) : store_(store) {
  for (std::uint32_t thread = 0; thread < store.definitions.threads.size(); ++thread) {
    is_autograd_.push_back(is_autograd_thread(store.definitions, ThreadId{thread}));
    works_for_.push_back(ThreadId{thread});
  }
}

ThreadId HomeThreads::add(std::size_t block, Phase phase) {
  const Blocks& blocks = store_.blocks;
  const ThreadId thread = blocks.thread[block];
  if (thread.value >= works_for_.size()) return thread;
  const std::vector<AutogradNode>& nodes = store_.definitions.autograd_nodes;
  const AutogradNodeId node = blocks.node.empty() ? AutogradNodeId{} : blocks.node[block];
  const ThreadId made_by = node.value < nodes.size() ? nodes[node.value].forward_thread : ThreadId{};
  if (made_by.value < works_for_.size() && made_by != thread) {
    works_for_[thread.value] = works_for_[made_by.value];
  } else if (is_autograd_[thread.value] && works_for_[thread.value] == thread && last_forward_.valid()) {
    return last_forward_;
  }
  const ThreadId home = works_for_[thread.value];
  if (phase == Phase::forward) last_forward_ = home;
  return home;
}

}  // namespace tidemark
