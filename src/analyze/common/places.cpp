#include "analyze/common/places.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tidemark {
namespace {

// Stacks are one place when these agree: the frame shown and the leaf.
using PlaceKey = std::tuple<std::string, std::string, std::uint32_t, std::string>;

PlaceKey key_of(const NamedStack& stack) {
  if (stack.frames.empty()) return {};
  const FrameName& place = stack.frames[stack.place];
  return {place.function, place.file, place.line, stack.leaf ? stack.frames[*stack.leaf].function : std::string()};
}

}  // namespace

Places group_by_place(std::vector<StackUsage> usages, Symbols& symbols, std::uint64_t whole, std::size_t top) {
  std::sort(usages.begin(), usages.end(), [](const StackUsage& left, const StackUsage& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.stack < right.stack;
  });
  Places result;
  std::vector<Place>& places = result.places;
  std::map<PlaceKey, std::size_t> index_of;
  for (const StackUsage& usage : usages) {
    NamedStack stack = name_stack(symbols, usage.stack);
    const auto [entry, is_new] = index_of.try_emplace(key_of(stack), places.size());
    if (is_new) places.emplace_back().stack = std::move(stack);
    Place& place = places[entry->second];
    place.bytes += usage.bytes;
    place.blocks += usage.blocks;
    ++place.stacks;
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& left, const Place& right) { return left.bytes > right.bytes; });
  for (std::size_t index = top; top != 0 && index < places.size(); ++index) {
    ++result.other_places;
    result.other_bytes += places[index].bytes;
  }
  if (top != 0 && places.size() > top) places.resize(top);
  for (Place& place : places) {
    if (whole != 0) place.share = static_cast<double>(place.bytes) / static_cast<double>(whole);
  }
  return result;
}

}  // namespace tidemark
