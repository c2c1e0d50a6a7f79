#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/units.h"
#include "report/columns.h"
#include "report/frame_text.h"
#include "report/text.h"
#include "report/text_parts.h"

namespace tidemark {
namespace {

using Use = MapPiece::Use;

std::string known_count(const std::optional<std::uint64_t>& count) {
  return count ? format_count(*count) : "n/a";
}

// One row for each measure, one column for each moment.
std::string measures_text(const FragmentationDevice& device, const Terminal& terminal) {
  std::vector<std::pair<std::string, const FragmentationMeasures*>> moments;
  if (device.at_peak_allocated) moments.emplace_back("peak allocated", &*device.at_peak_allocated);
  if (device.at_peak_reserved) moments.emplace_back("peak reserved", &*device.at_peak_reserved);
  moments.emplace_back("end", &device.at_end);
  std::vector<std::string> headings;
  headings.reserve(moments.size() + 1);
  for (const auto& [name, measures] : moments) headings.push_back(name);
  headings.emplace_back("");
  Columns columns(headings);
  const auto row = [&](const char* label, const std::function<std::string(const FragmentationMeasures&)>& cell) {
    std::vector<std::string> cells;
    cells.reserve(moments.size() + 1);
    for (const auto& [name, measures] : moments) cells.push_back(cell(*measures));
    cells.emplace_back(label);
    columns.add(std::move(cells));
  };
  using M = FragmentationMeasures;
  row("from the start", [](const M& m) { return format_duration_ns(m.time_ns); });
  row("allocated", [](const M& m) { return format_bytes(m.allocated); });
  row("reserved", [](const M& m) { return bytes_text(m.reserved); });
  row("not allocated, of reserved", [](const M& m) { return share_text(m.unused_share()); });
  if (!device.knows_segments) return columns.text(terminal, 2);
  row("free: cached by the allocator", [](const M& m) { return bytes_text(m.free); });
  row("  in so many pieces", [](const M& m) { return known_count(m.free_pieces); });
  row("  the largest of them", [](const M& m) { return bytes_text(m.largest_free); });
  row("  outside the largest", [](const M& m) { return share_text(m.external_share()); });
  row("  releasable: whole segments", [](const M& m) { return bytes_text(m.releasable); });
  row("  inactive split: beside blocks in use", [](const M& m) { return bytes_text(m.inactive_split); });
  row("pending free", [](const M& m) { return m.active ? format_bytes(*m.active - m.allocated) : "n/a"; });
  row("rounding: allocated beyond requested", [](const M& m) { return bytes_text(m.rounding); });
  return columns.text(terminal, 2);
}

// What most of each of `width` equal stretches is used for; a free one with something in it shows that.
std::string map_line(const MapSegment& segment, std::size_t width) {
  std::string line;
  auto piece = segment.pieces.begin();
  for (std::size_t cell = 0; cell < width; ++cell) {
    const std::uint64_t from = segment.address + segment.size / width * cell;
    const std::uint64_t to = cell + 1 == width ? segment.address + segment.size : from + segment.size / width;
    std::array<std::uint64_t, 3> bytes{};
    while (piece != segment.pieces.end() && piece->address + piece->size <= from) ++piece;
    for (auto part = piece; part != segment.pieces.end() && part->address < to; ++part) {
      bytes[static_cast<std::size_t>(part->use)] +=
          std::min(to, part->address + part->size) - std::max(from, part->address);
    }
    const auto most = static_cast<Use>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
    const bool mixed = most == Use::free && bytes[0] != to - from;
    line += most == Use::used ? "█" : most == Use::pending ? "▒" : mixed ? "░" : "·";
  }
  return line;
}

std::string segments_text(const FragmentationDevice& device, const Terminal& terminal) {
  constexpr std::size_t kWidth = 48;
  if (device.segments.empty() && device.empty_segments == 0) return {};
  Columns columns({"free", "segment", "blocks", "█ used  ▒ pending  ░ a part used  · free"});
  for (const MapSegment& segment : device.segments) {
    const auto blocks = std::count_if(segment.pieces.begin(), segment.pieces.end(),
                                      [](const MapPiece& piece) { return piece.use != Use::free; });
    columns.add({format_bytes(segment.bytes(Use::free)), format_bytes(segment.size),
                 format_count(static_cast<std::uint64_t>(blocks)), map_line(segment, kWidth)});
  }
  if (device.other_segments != 0) {
    columns.add({format_bytes(device.other_free_bytes), "", "",
                 fmt::format("({} more; --top 0 lists all)", format_count(device.other_segments))});
  }
  std::string text = "\n" + columns.text(terminal, 2);
  if (device.empty_segments != 0) {
    text += fmt::format("  and segments without any block: {}, {} in all\n", format_count(device.empty_segments),
                        bytes_text(device.at_moment->releasable));
  }
  return text;
}

std::string sizes_text(const FragmentationDevice& device, const Terminal& terminal) {
  if (device.sizes.empty()) return {};
  Columns columns({"allocations", "live blocks", "live", "free pieces", "free", "size of each"});
  for (const SizeClass& sizes : device.sizes) {
    columns.add({format_count(sizes.allocations), format_count(sizes.live_blocks), format_bytes(sizes.live_bytes),
                 format_count(sizes.free_pieces), format_bytes(sizes.free_bytes),
                 sizes.from == 0 ? "below 1.0 KiB" : "from " + format_bytes(sizes.from)});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string pinning_text(const FragmentationDevice& device, const Terminal& terminal) {
  if (device.pinning.empty()) return {};
  Columns columns({"pins alone", "segments", "blocks", "bytes", "whose blocks keep segments with free memory"});
  for (const PinningStack& row : device.pinning) {
    columns.add({format_bytes(row.pinned_free_bytes), format_count(row.segments), format_count(row.blocks),
                 format_bytes(row.bytes), stack_text(row.stack)});
  }
  if (device.other_pinning != 0) {
    columns.add({"", "", "", "", fmt::format("({} more; --top 0 lists all)", format_count(device.other_pinning))});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string over_time_text(const FragmentationDevice& device, const Terminal& terminal) {
  Columns columns({"time", "allocated", "reserved", "not allocated", "free pieces", "largest"});
  for (const FragmentationMeasures& measures : device.over_time) {
    columns.add({format_duration_ns(measures.time_ns), format_bytes(measures.allocated), bytes_text(measures.reserved),
                 share_text(measures.unused_share()), known_count(measures.free_pieces),
                 bytes_text(measures.largest_free)});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string device_text(const FragmentationDevice& device, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::heading, to_string(device.totals.device)) + "\n";
  if (!device.totals.peak_reserved_bytes) {
    return text + "  the allocator of this device reports no reserved memory: nothing can be said\n";
  }
  text += measures_text(device, terminal);
  if (const auto share = device.peak_share()) {
    text += fmt::format("  1 - peak active / peak reserved: {}\n", share_text(*share));
  }
  text += over_time_text(device, terminal);
  if (!device.knows_segments) {
    return text + "\n  recordings do not know segments yet: see a PyTorch snapshot for where free memory lies\n";
  }
  if (device.at_moment) {
    text += "\n  " + paint(terminal, Tone::heading, "At " + format_duration_ns(device.at_moment->time_ns)) + "\n";
  }
  return text + segments_text(device, terminal) + pinning_text(device, terminal) + sizes_text(device, terminal);
}

}  // namespace

std::string to_text(const Fragmentation& fragmentation, const Terminal& terminal) {
  std::string text;
  for (const FragmentationDevice& device : fragmentation.devices) {
    if (!text.empty()) text += "\n";
    text += device_text(device, terminal);
  }
  if (fragmentation.devices.empty()) text += no_events_text(fragmentation.recording);
  return text + quality_hint(fragmentation.recording, terminal);
}

}  // namespace tidemark
