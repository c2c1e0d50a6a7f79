#include "analyze/common/analysis_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "analyze/usage/compare.h"
#include "base/units.h"

namespace tidemark {
namespace {

// "1%" or "0.01".
std::optional<double> parse_share(std::string_view text) {
  double number = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool percent = rest + 1 == end && *rest == '%';
  if (error != std::errc() || (rest != end && !percent)) return std::nullopt;
  if (percent) number /= 100;
  return number >= 0 && number <= 1 ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> parse_size_above_0(std::string_view text) {
  const auto size = parse_size(text);
  return size && *size > 0 ? size : std::nullopt;
}

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  constexpr std::string_view kPerStep = "/step";
  if (text.ends_with(kPerStep)) text.remove_suffix(kPerStep.size());
  return parse_size(text);
}

}  // namespace

bool AnalysisOption::allows(std::string_view text) const {
  switch (kind) {
    case Kind::flag:
      return text == "yes";
    case Kind::count: {
      const auto number = parse_number<std::uint64_t>(text);
      return number && *number >= least && *number <= most;
    }
    case Kind::word: {
      const std::vector<std::string> words = split_choices(value);
      return std::find(words.begin(), words.end(), text) != words.end();
    }
    case Kind::share:
      return parse_share(text).has_value();
    case Kind::size:
      return parse_size_above_0(text).has_value();
    case Kind::limit:
      return parse_budget(text).ok();
    case Kind::rate:
      return parse_rate(text).has_value();
  }
  return false;
}

std::string AnalysisOption::expected() const {
  switch (kind) {
    case Kind::flag:
      return "yes";
    case Kind::count:
      return fmt::format("an integer from {} to {}", least, most);
    case Kind::word:
      return fmt::format("one of {}", fmt::join(split_choices(value), ", "));
    case Kind::share:
      return "a share such as 1% or 0.01";
    case Kind::size:
      return "bytes, or a size such as 80GiB";
    case Kind::limit:
      return "a share such as 5%, or a size such as 100MiB";
    case Kind::rate:
      return "bytes per step, such as 0, 512 or 10KiB/step";
  }
  return "";
}

std::vector<std::string> split_choices(std::string_view choices) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t bar = choices.find('|');
    words.emplace_back(choices.substr(0, bar));
    if (bar == std::string_view::npos) return words;
    choices.remove_prefix(bar + 1);
  }
}

AnalysisOption top_option(std::uint64_t initial, std::string help) {
  return {"top", AnalysisOption::Kind::count, "N", std::move(help), std::to_string(initial)};
}

AnalysisOption simulate_option() {
  return {.name = "simulate",
          .kind = AnalysisOption::Kind::word,
          .value = "auto|pytorch|model|off",
          .help =
              "Replay other allocator settings for the advice, as `tidemark simulate` does: by PyTorch, by a model of "
              "it, or not; auto: by PyTorch for text on a terminal; else `explain` by the model",
          .initial = "auto"};
}

AnalysisOption by_option(const std::string& initial) {
  return {.name = "by",
          .kind = AnalysisOption::Kind::word,
          .value = initial + "|category|component|layer|module|phase|step",
          .help = "List what holds memory by this",
          .initial = initial};
}

AnalysisOption rank_option() {
  return {"rank", AnalysisOption::Kind::count, "N", "Of several recordings, show the details of this rank", ""};
}

AnalysisOptions::AnalysisOptions(const std::vector<AnalysisOption>& options) {
  for (const AnalysisOption& option : options) values_[option.name] = option.initial;
}

std::shared_ptr<const Attribution> AnalysisOptions::attribute(const Store& store) const {
  return attribution ? attribution : std::make_shared<const Attribution>(attribute_blocks(store, rules));
}

Result<BlockFilter> AnalysisOptions::chosen_blocks(const Store& store) const {
  if (filter.empty()) return BlockFilter();
  return choose_blocks(store, *attribute(store), filter);
}

Result<Holders> AnalysisOptions::holders(const Store& store) const {
  const auto by = values_.find("by");
  const auto kind = by == values_.end() ? std::nullopt : value_in(kOwnerKindNames, by->second);
  if (filter.empty() && !kind) return Holders();
  const std::shared_ptr<const Attribution> owners = attribute(store);
  auto chosen = choose_blocks(store, *owners, filter);
  if (!chosen) return chosen.error();
  if (!kind) return Holders(std::move(*chosen));
  auto groups = OwnerGroups::create(store, *owners, *kind);
  if (!groups) return groups.error();
  return Holders(std::move(*chosen), std::move(*groups), owners);
}

std::optional<std::uint64_t> AnalysisOptions::given_count(const std::string& name) const {
  return parse_number<std::uint64_t>(values_.at(name));
}

std::optional<std::uint64_t> AnalysisOptions::given_size(const std::string& name) const {
  return parse_size_above_0(values_.at(name));
}

std::optional<std::uint64_t> AnalysisOptions::given_rate(const std::string& name) const {
  return parse_rate(values_.at(name));
}

double AnalysisOptions::share(const std::string& name) const {
  return parse_share(values_.at(name)).value_or(0);
}

}  // namespace tidemark
