#include "allocator/settings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>

#include "allocator/rules.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::array<std::string_view, 6> kPlacement = {"max_split_size_mb",           "garbage_collection_threshold",
                                                        "expandable_segments",         "roundup_power2_divisions",
                                                        "per_process_memory_fraction", "large_segment_size_mb"};

// The parts of "a,b:[c,d]" between commas that are in no brackets.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : text) {
    depth += (letter == '[') - (letter == ']');
    if (letter == ',' && depth == 0) {
      parts.emplace_back();
    } else if (letter != ' ') {
      parts.back() += letter;
    }
  }
  std::erase(parts, "");
  return parts;
}

bool has_pairs_of_brackets(std::string_view text) {
  int depth = 0;
  for (const char letter : text) {
    depth += (letter == '[') - (letter == ']');
    if (depth < 0) return false;
  }
  return depth == 0;
}

// "8" for all sizes, or "[256:1,512:2,>:4]": by size in MiB; the first one holds for smaller sizes, too.
bool read_divisions(const std::string& value, std::map<std::uint64_t, std::uint64_t>& divisions) {
  const auto set = [&](std::size_t first, std::size_t end, std::uint64_t number) {
    for (std::size_t interval = first; interval < end; ++interval) divisions[std::uint64_t{1} << interval] = number;
  };
  constexpr std::size_t kAll = pytorch::kRoundUpPowerOfTwoIntervals;
  if (!value.starts_with('[')) {
    const auto number = parse_number<std::uint64_t>(value);
    if (number) set(0, kAll, *number);
    return number.has_value();
  }
  if (!value.ends_with(']')) return false;
  std::optional<std::size_t> last;
  for (const std::string& part : parts_of(value.substr(1, value.size() - 2))) {
    const std::size_t colon = std::min(part.find(':'), part.size() - 1);
    const auto number = parse_number<std::uint64_t>(std::string_view(part).substr(colon + 1));
    const std::string size = part.substr(0, colon);
    const auto mebibytes = parse_number<std::uint64_t>(size);
    if (!number || (size != ">" && (!mebibytes || *mebibytes == 0))) return false;
    if (size == ">") {
      set(last.value_or(0) + 1, kAll, *number);
      continue;
    }
    const auto interval = std::min(static_cast<std::size_t>(std::bit_width(*mebibytes)) - 1, kAll - 1);
    set(last ? interval : 0, interval + 1, *number);
    last = interval;
  }
  return true;
}

}  // namespace

Result<SettingList> parse_settings(const std::string& text) {
  SettingList settings;
  for (const std::string& part : parts_of(text)) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == part.size()) {
      return Error{fmt::format("'{}' is no setting: expected NAME:VALUE, such as expandable_segments:True", part)};
    }
    if (!has_pairs_of_brackets(part)) return Error{fmt::format("'{}' has a bracket without the other one", part)};
    settings = with_changes(std::move(settings), {{part.substr(0, colon), part.substr(colon + 1)}});
  }
  return settings;
}

std::string settings_text(const SettingList& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, value);
  return text;
}

SettingList with_changes(SettingList base, const SettingList& changes) {
  for (const NamedSetting& change : changes) {
    const auto found = std::find_if(base.begin(), base.end(),
                                    [&](const NamedSetting& setting) { return setting.first == change.first; });
    if (found == base.end()) {
      base.push_back(change);
    } else {
      found->second = change.second;
    }
  }
  return base;
}

SettingList placement_settings(const SettingList& settings) {
  SettingList kept;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(kept), [](const NamedSetting& setting) {
    return std::find(kPlacement.begin(), kPlacement.end(), setting.first) != kPlacement.end();
  });
  return kept;
}

Result<pytorch::AllocatorSettings> allocator_settings(const SettingList& settings) {
  pytorch::AllocatorSettings read;
  read.text = settings_text(settings);
  for (const auto& [name, value] : settings) {
    bool valid = true;
    if (name == "expandable_segments") {
      valid = value == "True" || value == "False";
      read.expandable_segments = value == "True";
    } else if (name == "max_split_size_mb") {
      const auto mebibytes = parse_number<std::uint32_t>(value);
      valid = mebibytes && *mebibytes > pytorch::kLargeBuffer / kMiB;
      if (valid) read.max_split_size = static_cast<std::int64_t>(*mebibytes * kMiB);
    } else if (name == "garbage_collection_threshold") {
      const auto threshold = parse_number<double>(value);
      valid = threshold && *threshold > 0 && *threshold < 1;
      if (valid) read.garbage_collection_threshold = threshold;
    } else if (name == "roundup_power2_divisions") {
      valid = read_divisions(value, read.roundup_power2_divisions);
    } else {
      return Error{fmt::format("{}: Tidemark's model of the allocator does not know this setting", name)};
    }
    if (!valid) return Error{fmt::format("{}:{} is not a value that PyTorch takes", name, value)};
  }
  return read;
}

pytorch::AllocatorSettings known_settings(const std::string& text) {
  SettingList known;
  if (const auto settings = parse_settings(text); settings.ok()) {
    std::ranges::copy_if(*settings, std::back_inserter(known),
                         [](const NamedSetting& setting) { return allocator_settings({setting}).ok(); });
  }
  pytorch::AllocatorSettings read;
  if (auto settings = allocator_settings(known); settings.ok()) read = *std::move(settings);
  read.text = text;
  return read;
}

}  // namespace tidemark
