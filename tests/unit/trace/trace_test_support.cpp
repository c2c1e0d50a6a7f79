#include "trace_test_support.h"

#include <fmt/format.h>

namespace tidemark::testing {

std::string describe(const Event& event) {
  const auto id = [](std::uint32_t value) {
    return value == StackId::kNone ? std::string("-") : std::to_string(value);
  };
  std::string text =
      fmt::format("kind {} t {} thread {} {} address {:x} size {} slot {} stack {}", static_cast<int>(event.kind),
                  event.time_ns, id(event.thread.value), to_string(event.device), event.address, event.size,
                  id(event.slot.value), id(event.stack.value));
  if (event.has_totals) text += fmt::format(" totals {} {}", event.total_allocated, event.total_reserved);
  if (event.sequence != 0) text += fmt::format(" sequence {}", event.sequence);
  if (event.node.valid()) text += fmt::format(" node {} {}", event.node.value, event.node_sequence);
  return text;
}

}  // namespace tidemark::testing
