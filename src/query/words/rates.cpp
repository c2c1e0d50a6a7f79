#include "query/words/rates.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/units.h"

namespace tidemark {

std::string span_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 100 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} d", seconds / 86400);
}

std::string per_minute_text(double bytes_per_second) {
  const double bytes = std::abs(bytes_per_second) * 60;
  const std::string text = format_bytes(static_cast<std::uint64_t>(std::llround(bytes))) + "/min";
  return bytes_per_second < 0 ? "-" + text : text;
}

std::string interval_text(const Interval& seconds) {
  return fmt::format("in {} (90% interval: {} to {})", span_text(seconds.expected), span_text(seconds.earliest),
                     seconds.latest ? span_text(*seconds.latest) : "never");
}

std::string clear_change_text(const Slope& change, bool matters, const std::string& size) {
  return fmt::format("{} by {}{}", change.rises() ? "rises" : "falls", matters ? "" : "only ", size);
}

MistakeWords usual_mistake_words(UsualMistake mistake, Device device) {
  switch (mistake) {
    case UsualMistake::losses_with_graph:
      return {"losses are kept with their autograd graphs", "keep loss.item() or loss.detach()"};
    case UsualMistake::metrics_not_detached:
      return {"metrics are kept with their autograd graphs", "compute them under torch.no_grad(), or keep .detach()"};
    case UsualMistake::tensors_with_graph:
      return {"tensors are kept with their autograd graphs, by a list, a hook, or a state that each step continues",
              "keep tensor.detach()"};
    case UsualMistake::capturing_hook:
      return {"a hook keeps the tensors that it is called with", "empty what the hook keeps, or remove the hook"};
    case UsualMistake::repeated_hook:
      return {"a hook is registered again and again, and each one keeps tensors",
              "register the hook once, or call remove() of the handle that its registration returns"};
    case UsualMistake::unbounded_cache:
      return {"a cache keeps every entry", "give it a maximum size, or empty it"};
    case UsualMistake::growing_container:
      return {"a list or dictionary only grows",
              device.type == DeviceType::cpu ? "empty it" : "empty it, or keep its tensors on the CPU"};
    case UsualMistake::none:
      break;
  }
  return {};
}

}  // namespace tidemark
