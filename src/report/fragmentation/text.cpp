#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/fragmentation.h"
#include "query/words/simulation.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"
#include "report/fragmentation/words.h"

namespace tidemark {
namespace {

using State = MapBlock::State;

std::string known_count(const std::optional<std::uint64_t>& count) {
  return count ? format_count(*count) : "n/a";
}

std::string measures_text(const FragmentationDevice& device, const Terminal& terminal) {
  std::vector<std::string> headings;
  for (const MeasureColumn& moment : measure_columns(device)) headings.emplace_back(moment.name);
  headings.emplace_back("");
  Columns columns(headings);
  for (MeasureRow& row : measure_rows(device)) {
    row.cells.emplace_back(row.label);
    columns.add(std::move(row.cells));
  }
  return columns.text(terminal, 2);
}

// The state of most of each of `width` equal stretches; a free stretch that contains blocks is marked.
std::string map_line(const MapSegment& segment, std::size_t width) {
  std::string line;
  auto block = segment.blocks.begin();
  for (std::size_t cell = 0; cell < width; ++cell) {
    const std::uint64_t from = segment.address + segment.size / width * cell;
    const std::uint64_t to = cell + 1 == width ? segment.address + segment.size : from + segment.size / width;
    std::array<std::uint64_t, 3> bytes{};
    while (block != segment.blocks.end() && block->address + block->size <= from) ++block;
    for (auto part = block; part != segment.blocks.end() && part->address < to; ++part) {
      bytes[static_cast<std::size_t>(part->state)] +=
          std::min(to, part->address + part->size) - std::max(from, part->address);
    }
    const auto most = static_cast<State>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
    const bool mixed = most == State::free && bytes[0] != to - from;
    line += most == State::allocated ? "█" : most == State::pending_free ? "▒" : mixed ? "░" : "·";
  }
  return line;
}

std::string segments_text(const FragmentationDevice& device, const Terminal& terminal) {
  constexpr std::size_t kMapWidth = 48;
  if (device.segments.empty() && device.empty_segments == 0) return {};
  Columns columns({"free", "segment", "blocks", "█ allocated  ▒ pending free  ░ partly allocated  · free"});
  for (const MapSegment& segment : device.segments) {
    const auto blocks = std::count_if(segment.blocks.begin(), segment.blocks.end(),
                                      [](const MapBlock& block) { return block.state != State::free; });
    columns.add({format_bytes(segment.bytes(State::free)), format_bytes(segment.size),
                 format_count(static_cast<std::uint64_t>(blocks)), map_line(segment, kMapWidth)});
  }
  if (device.other_segments != 0) {
    columns.add({format_bytes(device.other_free_bytes), "", "",
                 fmt::format("({} more; --top 0 lists all)", format_count(device.other_segments))});
  }
  std::string text = "\n" + columns.text(terminal, 2);
  if (device.empty_segments != 0) {
    text += fmt::format("  segments without blocks: {} ({})\n", format_count(device.empty_segments),
                        bytes_text(device.at_moment->releasable));
  }
  return text;
}

std::string sizes_text(const FragmentationDevice& device, const Terminal& terminal) {
  if (device.sizes.empty()) return {};
  Columns columns({"allocations", "live blocks", "live bytes", "free blocks", "free bytes", "block size"});
  for (const SizeClass& sizes : device.sizes) {
    columns.add({format_count(sizes.allocations), format_count(sizes.live_blocks), format_bytes(sizes.live_bytes),
                 format_count(sizes.free_blocks), format_bytes(sizes.free_bytes),
                 sizes.from == 0 ? "< 1.0 KiB" : ">= " + format_bytes(sizes.from)});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string pinning_rows(const std::vector<PinningStack>& rows, std::uint64_t other, const Terminal& terminal) {
  if (rows.empty()) return {};
  const HolderWords words = holder_words(rows, &PinningStack::stack, "stack");
  Columns columns({"pinned free", "segments", "blocks", "bytes", words.one + " that pins the segments"});
  for (const PinningStack& row : rows) {
    columns.add({format_bytes(row.pinned_free_bytes), format_count(row.segments), format_count(row.blocks),
                 format_bytes(row.bytes)},
                fitted(row.stack));
  }
  if (other != 0) {
    columns.add({"", "", "", "", fmt::format("({} more; --top 0 lists all)", format_count(other))});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string pinning_text(const FragmentationDevice& device, const Terminal& terminal) {
  return pinning_rows(device.pinning, device.other_pinning, terminal) +
         pinning_rows(device.pinning_categories, 0, terminal);
}

std::string over_time_text(const FragmentationDevice& device, const Terminal& terminal) {
  Columns columns({"time", "allocated", "reserved", "unused share", "free blocks", "largest free block"});
  for (const FragmentationMeasures& measures : device.over_time) {
    columns.add({format_duration_ns(measures.time_ns), format_bytes(measures.allocated), bytes_text(measures.reserved),
                 share_text(measures.unused_share()), known_count(measures.free_blocks),
                 bytes_text(measures.largest_free)});
  }
  std::string text = "\n" + columns.text(terminal, 2);
  text += fmt::format("  unused share {}\n", trend_text(device.unused.share_trend));
  if (device.knows_segments) {
    text += fmt::format("  external fragmentation {}\n", trend_text(device.external_trend));
  }
  return text;
}

// The changes that save the most reserved memory, with their evidence.
std::string changes_text(const FragmentationDevice& device, const RecordingInfo& recording, const Terminal& terminal) {
  if (device.advice.empty()) return {};
  std::string text = paint(terminal, Tone::heading, "Changes that save reserved memory:") + "\n";
  std::size_t number = 0;
  for (const FragmentationAdvice& advice : device.advice) {
    const FragmentationAdviceText words = advice_text(advice, device.unused, recording);
    const bool replayed = advice.kind == FragmentationAdviceKind::settings;
    text += fmt::format("  {}. {}: saves {}{}\n", ++number, words.change, replayed ? "" : "at most ",
                        format_bytes(advice.bytes));
    text += fmt::format("     because {}\n", words.reason);
    if (!words.check.empty()) text += fmt::format("     check: {}\n", words.check);
  }
  return text;
}

std::string course_text(const UnusedMemory& unused) {
  if (!unused.known()) return {};
  return "\n" + fact("pattern", unused_pattern_text(unused)) +
         fact("trend", "unused memory " + unused_trend_text(unused)) + fact("forecast", unused_forecast_text(unused));
}

std::string device_text(const FragmentationDevice& device, const RecordingInfo& recording, const Terminal& terminal) {
  const DeviceSummary& totals = device.totals;
  if (!totals.peak_allocated_at_ns) {
    return nothing_allocated_text(totals.device, {}, totals.peak_reserved_bytes) + "\n";
  }
  const std::string name = paint(terminal, Tone::heading, to_string(totals.device));
  if (!totals.peak_reserved_bytes) {
    return name + ": the allocator of this device does not report reserved memory\n";
  }
  std::string text = fmt::format("{}: {}\n{}\n", name, fragmentation_verdict(device.unused),
                                 changes_text(device, recording, terminal));
  text += measures_text(device, terminal);
  if (const auto share = device.peak_share()) {
    text += fmt::format("  unused share of the peaks (1 - peak active / peak reserved): {}\n", share_text(*share));
  }
  text += course_text(device.unused);
  if (terminal.all) text += over_time_text(device, terminal);
  if (!device.knows_segments) {
    return text + "\n  segment map unavailable: recordings contain no segments (PyTorch snapshots do)\n";
  }
  if (device.at_moment) {
    text +=
        "\n  " + paint(terminal, Tone::heading, "Segments at " + format_duration_ns(device.at_moment->time_ns)) + "\n";
  }
  text += segments_text(device, terminal) + pinning_text(device, terminal);
  return terminal.all ? text + sizes_text(device, terminal) : text;
}

}  // namespace

std::string to_text(const Fragmentation& fragmentation, const Terminal& terminal) {
  std::string text;
  if (fragmentation.simulation) text = cited_simulation_text(*fragmentation.simulation) + "\n\n";
  text += join_devices(fragmentation.devices, [&](const FragmentationDevice& device) {
    return device_text(device, fragmentation.recording, terminal);
  });
  if (fragmentation.devices.empty()) return text + no_events_text(fragmentation.recording);
  text += quality_hint(fragmentation.recording, terminal);
  const bool on_gpu = std::ranges::any_of(fragmentation.devices, [](const FragmentationDevice& device) {
    return device.totals.peak_reserved_bytes.value_or(0) != 0;
  });
  if (!on_gpu) return text;
  return text +
         next_text(fragmentation.recording, "simulate --search", "what other settings would have done", terminal);
}

}  // namespace tidemark
