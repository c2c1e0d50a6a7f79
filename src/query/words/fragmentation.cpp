#include "query/words/fragmentation.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "allocator/settings_text.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

constexpr double kLongEnoughForRate = 10;  // seconds: over a shorter time, a rate per minute extrapolates too far

std::string signed_bytes_text(double bytes) {
  const auto size = static_cast<std::uint64_t>(std::llround(std::abs(bytes)));
  return size == 0 ? "0 B" : (bytes < 0 ? "-" : "+") + format_bytes(size);
}

std::string idle_text(const UnusedMemory& unused) {
  return fmt::format("at least {} of {} reserved ({}) was unused at all times after {}", format_bytes(unused.idle),
                     format_bytes(unused.reserved), share_text(unused.idle_share()),
                     format_duration_ns(unused.idle_since_ns));
}

// What a recorded max_split_size_mb does; empty without it.
std::string split_limit_text(const RecordingInfo& recording) {
  const auto limit = known_settings(recording.allocator_settings.value_or("")).max_split_size;
  if (!limit) return {};
  return fmt::format("; with the recorded max_split_size_mb:{} a free block of that size or more is not split",
                     *limit / static_cast<std::int64_t>(kMiB));
}

std::string too_few_text(const UnusedMemory& unused) {
  return fmt::format("unknown: {} allocations and frees in reserved memory, fewer than {}",
                     format_count(unused.changes), kFewestUnusedChanges);
}

}  // namespace

std::string unused_pattern_text(const UnusedMemory& unused) {
  const std::string since = format_duration_ns(unused.since_ns);
  switch (unused.pattern) {
    case UnusedPattern::stable:
      return "stable since " + since;
    case UnusedPattern::growing:
      return "growing since " + since;
    case UnusedPattern::steps:
      return "growing in steps since " + since;
    case UnusedPattern::sawtooth:
      return fmt::format("sawtooth with a period of {} since {}", span_text(unused.period_seconds.value_or(0)), since);
    case UnusedPattern::held_peak:
      return fmt::format("held peak: {} were allocated at {}, at most {} since {}; the memory is still reserved",
                         format_bytes(unused.peak_allocated), format_duration_ns(unused.peak_at_ns),
                         format_bytes(unused.later_allocated), since);
    case UnusedPattern::irregular:
      return "irregular since " + since;
    case UnusedPattern::unknown:
      break;
  }
  return too_few_text(unused);
}

std::string unused_trend_text(const UnusedMemory& unused) {
  if (!unused.trend) return "unknown";
  const ByteTrend& trend = *unused.trend;
  const Slope& change = trend.change;
  std::string time = fmt::format("from {} to {}", format_duration_ns(trend.begin_ns), format_duration_ns(trend.end_ns));
  const std::string interval =
      fmt::format("95% interval {} to {}", signed_bytes_text(change.low), signed_bytes_text(change.high));
  if (!change.rises() && !change.falls()) return fmt::format("shows no clear trend {} ({})", time, interval);
  if (trend.seconds() >= kLongEnoughForRate) time += ", " + per_minute_text(change.value / trend.seconds());
  const std::string size = format_bytes(static_cast<std::uint64_t>(std::llround(std::abs(change.value))));
  return fmt::format("{} {} ({})", clear_change_text(change, trend.rises() || trend.falls(), size), time, interval);
}

std::string unused_forecast_text(const UnusedMemory& unused) {
  if (!unused.known()) return "unknown";
  if (!unused.grows()) {
    const bool rises = unused.pattern == UnusedPattern::irregular && unused.trend && unused.trend->rises();
    return rises ? "unknown: unused memory rises, but not at a steady rate"
                 : "no limit in sight: unused memory does not grow steadily";
  }
  if (!unused.device_free) return "unknown: the recording does not say how much of the device is free";
  const std::string free = format_bytes(*unused.device_free);
  if (!unused.seconds_to_limit)
    return fmt::format("unused memory does not reach the {} that the device has free", free);
  return fmt::format("unused memory takes the {} that the device has free {}", free,
                     interval_text(*unused.seconds_to_limit));
}

std::string fragmentation_verdict(const UnusedMemory& unused) {
  if (!unused.known()) return "Fragmentation is " + too_few_text(unused) + ".";
  if (is_fragmented(unused)) return idle_text(unused) + ".";
  return "Fragmentation is low: " + idle_text(unused) + ".";
}

FragmentationAdviceText advice_text(const FragmentationAdvice& advice, const UnusedMemory& unused,
                                    const RecordingInfo& recording) {
  FragmentationAdviceText text;
  const std::string path = printable(recording.path);
  const std::string recorded = shown(recording.allocator_settings.value_or(""));
  const auto set = [&](std::string settings) {
    text.settings = std::move(settings);
    text.change =
        text.settings.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF" : "set PYTORCH_CUDA_ALLOC_CONF=" + text.settings;
    if (!recorded.empty()) text.change += fmt::format(" (now {})", recorded);
    text.check = fmt::format("tidemark simulate {} --set {}", path, text.settings);
  };
  text.reason = idle_text(unused) + split_limit_text(recording);
  switch (advice.kind) {
    case FragmentationAdviceKind::empty_cache:
      text.change = "call torch.cuda.empty_cache() once after the peak, or lower the peak";
      text.reason =
          fmt::format("{} were allocated at {}, at most {} since; {} are still reserved, {} more than that",
                      format_bytes(unused.peak_allocated), format_duration_ns(unused.peak_at_ns),
                      format_bytes(unused.later_allocated), format_bytes(unused.reserved), format_bytes(unused.idle));
      text.check = fmt::format(
          "tidemark table {} lists what the peak held; run `tidemark fragment` again after the "
          "change",
          path);
      break;
    case FragmentationAdviceKind::expandable_segments:
      set("expandable_segments:True");
      text.reason += fmt::format("; block sizes vary: {} blocks over 1 MiB have {} different sizes",
                                 format_count(advice.blocks), format_count(advice.sizes));
      break;
    case FragmentationAdviceKind::search:
      text.change = "search for better allocator settings: the block sizes do not favor one";
      text.check = fmt::format("tidemark simulate {} --search", path);
      break;
    case FragmentationAdviceKind::settings:
      set(printable(advice.settings));
      text.reason = fmt::format("the peak reserved is {} lower when the recording is replayed with it, of {}",
                                format_bytes(advice.bytes), format_bytes(advice.reserved)) +
                    split_limit_text(recording);
      break;
  }
  return text;
}

}  // namespace tidemark
