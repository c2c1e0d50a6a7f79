// Which thread a block belongs to: autograd's threads work for the one whose forward pass they go back through.
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "store/store.h"

namespace tidemark {

/// Whether autograd started the thread: it runs nothing but backward passes.
[[nodiscard]] bool is_autograd_thread(const Definitions& definitions, ThreadId thread);

class HomeThreads {
 public:
  explicit HomeThreads(const Store& store);

  /// Blocks are added in order of birth, with their phases. Without an autograd node that knows its forward thread, a
  /// thread of autograd's works for the one that was in a forward pass last.
  ThreadId add(std::size_t block, Phase phase);

 private:
  const Store& store_;
  std::vector<bool> is_autograd_;    // by ThreadId
  std::vector<ThreadId> works_for_;  // by ThreadId: a recomputed forward pass is made by a thread of autograd's
  ThreadId last_forward_;
};

}  // namespace tidemark
