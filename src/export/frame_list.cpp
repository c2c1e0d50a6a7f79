#include "export/frame_list.h"

#include <utility>

#include "query/words/frame_text.h"

namespace tidemark {

std::vector<std::uint32_t> FrameList::stack(StackId id) {
  std::vector<std::uint32_t> numbers;
  for (const LocationId location : symbols_.frames(id)) {
    const auto [entry, is_new] = number_of_location_.try_emplace(location, 0);
    if (is_new) entry->second = add(symbols_.name(location));
    numbers.push_back(entry->second);
  }
  if (numbers.empty()) numbers.push_back(named("(no stack)"));
  return numbers;
}

std::uint32_t FrameList::named(const std::string& function) {
  FrameName frame;
  frame.function = function;
  return add(std::move(frame));
}

std::uint32_t FrameList::add(FrameName frame) {
  frame.function = function_text(frame);
  const auto number = static_cast<std::uint32_t>(frames_.size());
  const auto [entry, is_new] = number_of_.try_emplace({frame.function, frame.file, frame.line}, number);
  if (is_new) frames_.push_back(std::move(frame));
  return entry->second;
}

}  // namespace tidemark
