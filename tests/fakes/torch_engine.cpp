// Fake libtorch_cpu: evaluates nodes. Its caller is in another file, and calls it through the library's import table.
#include <cstdlib>
#include <utility>

#include "torch_cpu.h"

thread_local void (*fakes_action)(void*) = nullptr;
thread_local void* fakes_argument = nullptr;

namespace torch::autograd {

void Engine::evaluate_function(std::shared_ptr<GraphTask>& task, Node* node, InputBuffer& /*inputs*/,
                               const std::shared_ptr<ReadyQueue>& queue) {
  if (task == nullptr || node == nullptr || queue == nullptr) std::abort();  // the arguments have not come through
  std::exchange(fakes_action, nullptr)(fakes_argument);
}

}  // namespace torch::autograd
