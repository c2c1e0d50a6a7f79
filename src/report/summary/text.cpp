#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/explain.h"
#include "query/words/host_ledger.h"
#include "query/words/ledger.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string head(const RecordingInfo& recording, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::heading, recording_title(recording)) + "\n";
  for (const Fact& part : recording_facts(recording)) text += fact(part.label, part.value, terminal);
  return text;
}

std::string device_text(const SummaryDevice& device, const Terminal& terminal) {
  const DeviceSummary& totals = device.totals;
  if (!totals.peak_allocated_at_ns) {
    return nothing_allocated_text(totals.device, {}, totals.peak_reserved_bytes) + "\n";
  }
  std::string text = paint(terminal, Tone::heading, to_string(totals.device)) + "\n";
  text += fact("peak allocated", exact_text(totals.peak_allocated_bytes) + " " + at_text(totals.peak_allocated_at_ns));
  if (totals.peak_reserved_bytes) {
    text += fact("peak reserved", exact_text(*totals.peak_reserved_bytes) + " " + at_text(totals.peak_reserved_at_ns));
  } else {
    text += fact("peak reserved", "n/a");
  }
  if (totals.peak_active_bytes) {
    text += fact("peak active", exact_text(*totals.peak_active_bytes) + " " + at_text(totals.peak_active_at_ns));
  }
  text += fact("at end",
               fmt::format("{} allocated, {} reserved, live blocks: {}", format_bytes(totals.live_allocated_bytes),
                           bytes_text(totals.end_reserved_bytes), format_count(totals.live_count)));
  text += fact("allocations", fmt::format("{}, frees: {}, total allocated: {}", format_count(totals.allocation_count),
                                          format_count(totals.free_count), format_bytes(totals.total_bytes_allocated)));
  if (totals.out_of_memory_count != 0) {
    text += fact("out of memory",
                 format_count(totals.out_of_memory_count) + (totals.out_of_memory_count == 1 ? " error" : " errors"));
  }
  return text + "\n" + holders_text(device, terminal);
}

std::string out_of_memory_text(const Summary& summary, const Terminal& terminal) {
  if (summary.out_of_memory.empty()) return {};
  std::string text = "\n" + paint(terminal, Tone::error, "Out-of-memory errors") + "\n";
  for (const SummaryOutOfMemory& failure : summary.out_of_memory) {
    text += fmt::format("  {} {}: {} requested, {} allocated, {} reserved\n", to_string(failure.device),
                        at_text(failure.event.time_ns), format_bytes(failure.event.requested),
                        bytes_text(failure.event.allocated), bytes_text(failure.event.reserved));
    text += fact("  requested by", fitted(failure.stack), terminal);
  }
  return text;
}

// The peak's lines, then those that only the end has.
std::string ledger_text(const LedgerExtremes& ledger, const Terminal& terminal) {
  std::vector<LedgerRow> rows = ledger_rows(ledger.peak);
  std::vector<LedgerRow> at_end = ledger.end ? ledger_rows(*ledger.end) : std::vector<LedgerRow>();
  const auto find = [](const std::vector<LedgerRow>& in, const std::string& words) {
    return std::find_if(in.begin(), in.end(), [&](const LedgerRow& row) { return row.words == words; });
  };
  for (LedgerRow& row : at_end) {
    if (find(rows, row.words) == rows.end()) rows.insert(rows.end() - 1, {"", "", row.words});
  }
  Columns columns({"at peak", "at end", "owner"});
  columns.add({bytes_text(ledger.peak.used_bytes), ledger.end ? bytes_text(ledger.end->used_bytes) : "n/a",
               fmt::format("device used (peak {}, end {})", at_text(ledger.peak.time_ns),
                           ledger.end ? at_text(ledger.end->time_ns) : "n/a")});
  for (const LedgerRow& row : rows) {
    if (row.part) continue;
    const auto end = find(at_end, row.words);
    columns.add({row.bytes, end == at_end.end() ? "" : end->bytes, row.words});
  }
  std::string title = "Device memory of " + shown(ledger.device);
  if (!ledger.model.empty()) title += ", " + shown(ledger.model);
  if (ledger.total_bytes) title += fmt::format(" ({})", format_bytes(*ledger.total_bytes));
  std::string text = "\n" + paint(terminal, Tone::heading, title) + "\n" + columns.text(terminal, 2);
  if (!ledger.peak.caveats.empty()) text += "  See `tidemark ledger` for caveats.\n";
  return text;
}

// The host's, the same way.
std::string host_ledger_text(const HostLedgers& ledgers, const Terminal& terminal) {
  if (!ledgers.peak) return {};
  std::vector<LedgerRow> rows = host_rows(*ledgers.peak);
  const std::vector<LedgerRow> at_end = ledgers.last ? host_rows(*ledgers.last) : std::vector<LedgerRow>();
  const auto find = [](const std::vector<LedgerRow>& in, const std::string& words) {
    return std::find_if(in.begin(), in.end(), [&](const LedgerRow& row) { return row.words == words; });
  };
  for (const LedgerRow& row : at_end) {
    if (find(rows, row.words) == rows.end()) rows.insert(rows.end() - 1, {"", "", row.words});
  }
  Columns columns({"at peak", "at end", "owner"});
  columns.add({bytes_text(ledgers.peak->used_bytes), ledgers.last ? bytes_text(ledgers.last->used_bytes) : "n/a",
               fmt::format("used (peak {}, end {})", at_text(ledgers.peak->time_ns),
                           ledgers.last ? at_text(ledgers.last->time_ns) : "n/a")});
  for (const LedgerRow& row : rows) {
    const auto end = find(at_end, row.words);
    columns.add({row.bytes, end == at_end.end() ? "" : end->bytes, row.words});
  }
  std::string title =
      ledgers.peak->scope == HostScope::cgroup ? "Memory of the control group" : "Memory of the machine";
  if (ledgers.peak->limit_bytes) title += fmt::format(" ({})", format_bytes(*ledgers.peak->limit_bytes));
  std::string text = "\n" + paint(terminal, Tone::heading, title) + "\n" + columns.text(terminal, 2);
  if (!ledgers.peak->caveats.empty()) text += "  See `tidemark ledger --device host` for caveats.\n";
  return text;
}

std::string host_text(const HostUsage& host, const Terminal& terminal) {
  if (host.empty()) return {};
  std::string text = "\n" + paint(terminal, Tone::heading, "Host memory, sampled") + "\n";
  for (const Fact& part : host_facts(host)) text += fact(part.label, part.value);
  return text;
}

// What PyTorch had asked for is not in the call.
std::string pinned_text(const std::optional<SampledBytes>& pinned, const Terminal& terminal) {
  if (!pinned) return {};
  return "\n" + paint(terminal, Tone::heading, "Pinned host memory") + "\n" + fact("peak", peak_and_end(*pinned)) +
         fact("requested", kPinnedRequest);
}

}  // namespace

std::string holders_text(const SummaryDevice& device, const Terminal& terminal) {
  std::string text;
  if (!device.categories.empty()) {
    text = categories_text(device.categories, device.unrecorded_at_peak_bytes, terminal) + "\n";
  }
  if (!device.advice.empty()) text += advice_text(device.advice, terminal) + "\n";
  const HolderWords words = holder_words(device.call_sites, &CallSite::stack, "call site");
  Columns columns({"held at peak", "share", "blocks", words.one});
  for (const CallSite& site : device.call_sites) {
    columns.add({format_bytes(site.bytes), share_text(site.share), format_count(site.blocks)}, fitted(site.stack));
  }
  if (device.other_call_sites != 0) {
    columns.add({format_bytes(device.other_bytes), "", "",
                 fmt::format("({} other {})", format_count(device.other_call_sites),
                             device.other_call_sites == 1 ? words.one : words.several)});
  }
  if (device.unrecorded_at_peak_bytes != 0) {
    columns.add({format_bytes(device.unrecorded_at_peak_bytes), "", "", "(not recorded)"});
  }
  return text + columns.text(terminal, 2);
}

std::string to_text(const Summary& summary, const Terminal& terminal) {
  std::string text;
  if (summary.failure) {
    text = paint(terminal, Tone::error, out_of_memory_headline(*summary.failure, summary.recording)) + "\n\n";
  }
  text += head(summary.recording, terminal) + chosen_blocks_text(summary.recording, true);
  text += "\n";
  text += join_devices(summary.devices, [&](const SummaryDevice& device) { return device_text(device, terminal); });
  if (summary.devices.empty()) text += no_events_text(summary.recording);
  for (const LedgerExtremes& ledger : summary.ledgers) text += ledger_text(ledger, terminal);
  text += host_text(summary.host, terminal);
  text += pinned_text(summary.pinned, terminal);
  text += host_ledger_text(summary.host_ledgers, terminal);
  if (!summary.host_ledgers.kills.empty()) text += "\n" + kills_text(summary.host_ledgers.kills, terminal);
  text += out_of_memory_text(summary, terminal);
  return text + "\n" + quality_text(summary.recording.quality, terminal);
}

}  // namespace tidemark
