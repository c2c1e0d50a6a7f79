#include "import/pytorch_snapshot/model/stack_table.h"

#include <array>
#include <string>

namespace tidemark::pytorch {
namespace {

constexpr std::size_t kFactors = 128;

constexpr std::array<std::uint64_t, kFactors> make_factors() {
  std::array<std::uint64_t, kFactors> factors{};
  for (std::size_t n = 0; n < kFactors; ++n) factors[n] = mix(n + 1) | 1;
  return factors;
}

constexpr std::array<std::uint64_t, kFactors> kFactor = make_factors();

/// A sum of products, which do not wait for each other: stacks are looked up for most entries of a trace.
std::uint64_t hash_of(std::span<const PickleValue> frames) {
  std::uint64_t hash = frames.size();
  while (!frames.empty()) {
    const auto part = frames.first(std::min(frames.size(), kFactors));
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n < part.size(); ++n) sum += (part[n].id() + std::uint64_t{1}) * kFactor[n];
    hash = mix(hash ^ sum);
    frames = frames.subspan(part.size());
  }
  return hash;
}

}  // namespace

StringId StackTable::string(std::uint32_t text) {
  if (text >= strings_.size()) strings_.resize(texts_.count());
  StringId& id = strings_[text];
  if (!id.valid()) {
    id.value = static_cast<std::uint32_t>(definitions_.strings.size());
    definitions_.strings.emplace_back(texts_[text]);
  }
  return id;
}

LocationId StackTable::location(const Frame& frame) {
  const std::uint64_t hash = mix((std::uint64_t{frame.file} << 32 | frame.function) ^ mix(frame.line));
  const std::uint32_t id = locations_.find_or_make(
      hash, [&](std::uint32_t known) { return frames_[known] == frame; },
      [&] {
        Location location;
        location.file = string(frame.file);
        location.function = string(frame.function);
        location.line = frame.line;
        definitions_.locations.push_back(location);
        frames_.push_back(frame);
        return static_cast<std::uint32_t>(frames_.size() - 1);
      });
  return LocationId{id};
}

bool StackTable::same(StackId stack, std::span<const PickleValue> frames) const {
  for (const PickleValue frame : frames) {
    if (!stack.valid()) return false;
    const StackNode& node = definitions_.stacks[stack.value];
    if (node.location.value != frame.id()) return false;
    stack = node.parent;
  }
  return !stack.valid();
}

StackId StackTable::build(std::span<const PickleValue> frames) {
  StackId stack;
  for (std::size_t n = frames.size(); n > 0; --n) {
    const StackNode wanted{stack, LocationId{frames[n - 1].id()}};
    stack.value = nodes_.find_or_make(
        mix(std::uint64_t{wanted.parent.value} << 32 | wanted.location.value),
        [&](std::uint32_t known) {
          const StackNode& node = definitions_.stacks[known];
          return node.parent == wanted.parent && node.location == wanted.location;
        },
        [&] {
          definitions_.stacks.push_back(wanted);
          return static_cast<std::uint32_t>(definitions_.stacks.size() - 1);
        });
  }
  return stack;
}

StackId StackTable::stack(std::span<const PickleValue> frames) {
  return StackId{stacks_.find_or_make(
      hash_of(frames), [&](std::uint32_t known) { return same(StackId{known}, frames); },
      [&] { return build(frames).value; })};
}

std::vector<PickleValue> StackTable::frames_of(StackId stack) const {
  std::vector<PickleValue> frames;
  for (; stack.valid(); stack = definitions_.stacks[stack.value].parent) {
    frames.emplace_back(Tag::frame, definitions_.stacks[stack.value].location.value);
  }
  return frames;
}

}  // namespace tidemark::pytorch
