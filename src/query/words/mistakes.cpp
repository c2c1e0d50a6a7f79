#include "query/words/mistakes.h"

namespace tidemark {

std::string_view usual_mistake_text(UsualMistake mistake, Device device) {
  switch (mistake) {
    case UsualMistake::losses_with_graph:
      return "losses are kept with their autograd graphs: keep loss.item() or loss.detach()";
    case UsualMistake::metrics_not_detached:
      return "metrics are kept with their autograd graphs: compute them under torch.no_grad(), or keep .detach()";
    case UsualMistake::capturing_hook:
      return "a hook keeps the tensors that it is called with: keep what is computed from them, or remove the hook";
    case UsualMistake::unbounded_cache:
      return "a cache keeps every entry: give it a maximum size, or empty it";
    case UsualMistake::growing_container:
      if (device.type == DeviceType::cpu) return "a list or dictionary only grows: empty it";
      return "a list or dictionary only grows: empty it, or keep its tensors on the CPU";
    case UsualMistake::none:
      break;
  }
  return {};
}

}  // namespace tidemark
