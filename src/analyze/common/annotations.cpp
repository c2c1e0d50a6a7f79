#include "analyze/common/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/units.h"

namespace tidemark {
namespace {

/// The open ranges during a walk over marks in order.
class OpenRanges {
 public:
  void begin(StringId name, std::size_t range) {
    open_.push_back({name, range, false});
    of_name_[name].push_back(open_.size() - 1);
  }
  /// Ends the latest open range of this name. nullopt if there is none.
  std::optional<std::size_t> end(StringId name) {
    const auto found = of_name_.find(name);
    if (found == of_name_.end() || found->second.empty()) return std::nullopt;
    Open& ended = open_[found->second.back()];
    found->second.pop_back();
    ended.over = true;
    const std::size_t range = ended.range;
    while (!open_.empty() && open_.back().over) open_.pop_back();
    return range;
  }
  [[nodiscard]] StringId innermost() const { return open_.empty() ? StringId{} : open_.back().name; }

 private:
  struct Open {
    StringId name;
    std::size_t range = 0;
    bool over = false;  // ended before one that it encloses
  };
  std::vector<Open> open_;
  std::unordered_map<StringId, std::vector<std::size_t>> of_name_;  // positions in open_
};

/// "forward (40 times), step (40 times)": most frequent first.
std::string listed(const Definitions& definitions, const std::vector<AnnotatedRange>& ranges) {
  constexpr std::size_t kMaxListed = 8;
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const AnnotatedRange& range : ranges) ++counts[definitions.text(range.name)];
  std::vector<std::pair<std::size_t, std::string_view>> sorted;
  sorted.reserve(counts.size());
  for (const auto& [name, count] : counts) sorted.emplace_back(count, name);
  std::sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
    return left.first != right.first ? left.first > right.first : left.second < right.second;
  });
  std::string text;
  for (std::size_t index = 0; index < std::min(kMaxListed, sorted.size()); ++index) {
    const auto& [count, name] = sorted[index];
    text += fmt::format("{}'{}'{}", index == 0 ? "" : ", ", name,
                        count == 1 ? "" : fmt::format(" ({} times)", format_count(count)));
  }
  if (sorted.size() > kMaxListed) text += fmt::format(" and {} more", format_count(sorted.size() - kMaxListed));
  return text;
}

}  // namespace

std::vector<AnnotatedRange> annotated_ranges(const Definitions& definitions) {
  std::vector<AnnotatedRange> ranges;
  OpenRanges open;
  for (const Mark& mark : definitions.marks) {
    if (mark.kind == Mark::Kind::range_end) {
      if (const auto range = open.end(mark.name)) ranges[*range].end_ns = mark.time_ns;
      continue;
    }
    if (mark.kind == Mark::Kind::range_begin) open.begin(mark.name, ranges.size());
    AnnotatedRange& range = ranges.emplace_back();
    range.name = mark.name;
    range.begin_ns = mark.time_ns;
    if (mark.kind == Mark::Kind::point) range.end_ns = mark.time_ns;
  }
  return ranges;
}

std::vector<StringId> annotations_of_blocks(const Store& store) {
  const std::vector<Mark>& marks = store.definitions.marks;
  const Blocks& blocks = store.blocks;
  std::vector<StringId> names(blocks.count());
  OpenRanges open;
  auto mark = marks.begin();
  for (std::size_t block = 0; block < names.size(); ++block) {
    const std::uint64_t born_ns = store.live_changes[blocks.birth_change[block]].time_ns;
    for (; mark != marks.end() && mark->time_ns <= born_ns; ++mark) {
      if (mark->kind == Mark::Kind::range_begin) open.begin(mark->name, 0);
      if (mark->kind == Mark::Kind::range_end) open.end(mark->name);
    }
    names[block] = open.innermost();
  }
  for (const BlockMetadata& metadata : blocks.metadata) names[metadata.block.value] = metadata.text;
  return names;
}

Result<std::uint64_t> find_mark(const Overview& overview, std::string_view wanted) {
  const std::vector<AnnotatedRange> ranges = annotated_ranges(overview.definitions);
  const auto find = [&](std::string_view name, std::uint64_t times) -> std::optional<std::uint64_t> {
    for (const AnnotatedRange& range : ranges) {
      if (overview.definitions.text(range.name) == name && --times == 0) return range.begin_ns;
    }
    return std::nullopt;
  };
  if (const auto whole = find(wanted, 1)) return *whole;
  if (const std::size_t at = wanted.rfind('@'); at != std::string_view::npos) {
    std::uint64_t times = 0;
    const char* const end = wanted.data() + wanted.size();
    const auto [rest, error] = std::from_chars(wanted.data() + at + 1, end, times);
    if (error == std::errc() && rest == end && times != 0) {
      if (const auto found = find(wanted.substr(0, at), times)) return *found;
    }
  }
  if (ranges.empty()) {
    return Error{fmt::format(
        "{}: no mark '{}': the file contains no marks (expected peak, end, a time such as 12.5s or 300ms, a share such "
        "as 40%, or a training step such as step:3)",
        overview.path, wanted)};
  }
  return Error{
      fmt::format("{}: no mark '{}' (available: {})", overview.path, wanted, listed(overview.definitions, ranges))};
}

}  // namespace tidemark
