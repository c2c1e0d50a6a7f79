#include "analyze/common/moment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "analyze/common/annotations.h"
#include "analyze/steps/training_steps.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::string_view kMark = "mark:";
constexpr std::string_view kStep = "step:";

Error invalid_moment(std::string_view text) {
  return Error{fmt::format(
      "invalid time '{}' (expected peak, end, a time such as 12.5s or 300ms, a share such as 40%, a training "
      "step such as step:3, or the name of a mark)",
      text)};
}

// Text that begins like a number is a time or a share, not a name.
bool looks_like_a_number(std::string_view text) {
  return !text.empty() && std::string_view("0123456789.+-").find(text.front()) != std::string_view::npos;
}

// 20 for "step:20".
std::optional<std::uint64_t> step_number(std::string_view text) {
  return text.starts_with(kStep) ? parse_number<std::uint64_t>(text.substr(kStep.size())) : std::nullopt;
}

Result<Moment> find_step(const Store& store, std::uint64_t number) {
  const std::vector<TrainingSteps::Start> starts = find_training_steps(store).starts;
  if (number < starts.size()) return Moment{Moment::Kind::time, starts[number].time_ns, 0};
  if (starts.empty()) {
    return Error{
        fmt::format("{}: no step {}: no training steps detected: nothing repeats at least {} times; name the steps by "
                    "marks, or use a time such as 12.5s or a share such as 40%",
                    store.path, number, kFewestSteps)};
  }
  return Error{fmt::format("{}: no step {} (available: step:0 to step:{}, {} training steps)", store.path, number,
                           starts.size() - 1, format_count(starts.size()))};
}

// "40%"
Result<Moment> parse_percent(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !(number >= 0 && number <= 100)) return invalid_moment(text);
  return Moment{Moment::Kind::share, 0, number / 100};
}

std::uint64_t from_signed(std::int64_t value) {
  return value < 0 ? 0 : static_cast<std::uint64_t>(value);
}

std::uint64_t unrecorded_at(const Store& store, std::size_t device, std::uint64_t time_ns) {
  std::int64_t value = 0;
  for (const TotalsChange& change : store.totals_changes) {
    if (change.time_ns > time_ns) break;
    if (change.device == device) value = change.unrecorded;
  }
  return from_signed(value);
}

}  // namespace

Result<Moment> parse_moment(std::string_view text) {
  if (text == "peak") return Moment{};
  if (text == "end") return Moment{Moment::Kind::end, 0, 0};
  if (text.ends_with('%')) return parse_percent(text);
  const auto time_ns = parse_time(text, kNanosecond);
  if (!time_ns || has_no_unit(text) || *time_ns >= 1.8e19) return invalid_moment(text);
  return Moment{Moment::Kind::time, static_cast<std::uint64_t>(std::llround(std::min(*time_ns, 9.2e18))), 0};
}

Result<Moment> find_moment(const Store& store, std::string_view text) {
  if (auto moment = parse_moment(text)) return moment;
  if (const auto step = step_number(text)) return find_step(store, *step);
  const auto time_ns = find_mark(store, text.starts_with(kMark) ? text.substr(kMark.size()) : text);
  if (!time_ns) return time_ns.error();
  return Moment{Moment::Kind::time, *time_ns, 0};
}

std::string moment_of_mark(std::string_view name) {
  const bool other =
      looks_like_a_number(name) || parse_moment(name).ok() || step_number(name) || name.starts_with(kMark);
  return (other ? std::string(kMark) : std::string()) + std::string(name);
}

bool may_be_a_moment(std::string_view text) {
  return parse_moment(text).ok() || (!text.empty() && !looks_like_a_number(text));
}

ResolvedMoment resolve_moment(const Store& store, const Moment& moment, std::size_t device) {
  const DeviceSummary& summary = store.devices[device];
  const auto beyond = [](std::uint64_t allocated, std::uint64_t recorded) {
    return from_signed(static_cast<std::int64_t>(allocated - recorded));
  };
  switch (moment.kind) {
    case Moment::Kind::peak:
      return {summary.peak_allocated_at_ns, summary.peak_change_count,
              beyond(summary.peak_allocated_bytes, summary.peak_recorded_bytes)};
    case Moment::Kind::end:
      return {store.end_ns, store.live_changes.size(),
              beyond(summary.live_allocated_bytes, summary.live_recorded_bytes)};
    case Moment::Kind::time:
    case Moment::Kind::share:
      break;
  }
  const std::uint64_t time_ns = moment.kind == Moment::Kind::time
                                    ? std::min(moment.time_ns, store.end_ns)
                                    : static_cast<std::uint64_t>(static_cast<double>(store.end_ns) * moment.share);
  return {time_ns, store.changes_until(time_ns), unrecorded_at(store, device, time_ns)};
}

std::vector<BlockId> live_blocks(const Store& store, std::size_t device, std::uint64_t change_count) {
  std::vector<BlockId> live;
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    if (store.blocks.birth_change[block] >= change_count) break;  // later ones are born later still
    if (store.blocks.device[block] == device && store.blocks.alive(block, change_count)) {
      live.push_back(BlockId{static_cast<std::uint32_t>(block)});
    }
  }
  return live;
}

HeldBlocks held_blocks(const Store& store, const Moment& moment, std::size_t device, const BlockFilter& filter) {
  const ResolvedMoment resolved = resolve_moment(store, moment, device);
  HeldBlocks held{resolved.time_ns, live_blocks(store, device, resolved.change_count), resolved.unrecorded_bytes};
  if (filter.all()) return held;
  std::erase_if(held.blocks, [&](BlockId block) { return !filter(block.value); });
  held.unrecorded_bytes = 0;
  return held;
}

std::vector<std::uint64_t> blocks_at_start(const Store& store) {
  std::vector<std::uint64_t> counts(store.devices.size(), 0);
  for (const std::uint8_t device : store.blocks.device) ++counts[device];
  for (std::size_t device = 0; device < counts.size(); ++device) {
    counts[device] -= store.devices[device].allocation_count;
  }
  return counts;
}

}  // namespace tidemark
