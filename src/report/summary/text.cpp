#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/explain.h"
#include "query/words/host_ledger.h"
#include "query/words/ledger.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"
#include "report/explain/verdict.h"
#include "report/leaks/words.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxAdvice = 3;
constexpr std::size_t kMaxCategories = 6;

// "demo.tide (pid 9924): python3 train.py; 9.904 s, PyTorch 1.13.0".
std::string head(const RecordingInfo& recording, const Terminal& terminal) {
  const std::string title = paint(terminal, Tone::heading, recording_title(recording));
  if (terminal.all) {
    std::string text = title + "\n";
    for (const Fact& part : recording_facts(recording)) text += fact(part.label, part.value, terminal);
    return text;
  }
  constexpr std::size_t kCommandWidth = 60;
  const ProcessInfo& process = recording.process;
  std::vector<std::string> parts;
  if (recording.source == SourceKind::pytorch_snapshot) parts.emplace_back("PyTorch memory snapshot");
  if (!process.command_line.empty()) parts.push_back(shown(process.command_line, kCommandWidth));
  parts.push_back(format_duration_ns(recording.duration_ns));
  if (!process.torch_version.empty()) parts.push_back("PyTorch " + shown(process.torch_version));
  return fmt::format("{}: {}\n", title, fmt::join(parts, ", "));
}

// Memory of a device at its peak and at the end, in one line.
std::string totals_line(const DeviceSummary& totals, const Terminal& terminal) {
  std::string text = fmt::format("{}: peak {} allocated", paint(terminal, Tone::heading, to_string(totals.device)),
                                 format_bytes(totals.peak_allocated_bytes));
  if (totals.peak_reserved_bytes) text += fmt::format(" ({} reserved)", format_bytes(*totals.peak_reserved_bytes));
  text += fmt::format(" {}; at the end {}", at_text(totals.peak_allocated_at_ns),
                      format_bytes(totals.live_allocated_bytes));
  if (totals.end_reserved_bytes) text += fmt::format(" ({} reserved)", format_bytes(*totals.end_reserved_bytes));
  return text + "\n";
}

// `one_line`: a CPU beside a GPU.
std::string device_text(const SummaryDevice& device, bool one_line, bool advice, const Terminal& terminal) {
  const DeviceSummary& totals = device.totals;
  if (!totals.peak_allocated_at_ns) {
    return nothing_allocated_text(totals.device, {}, totals.peak_reserved_bytes) + "\n";
  }
  if (one_line) return totals_line(totals, terminal);
  if (!terminal.all) return totals_line(totals, terminal) + holders_text(device, advice, terminal);
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
  return text + "\n" + holders_text(device, true, terminal);
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

// The peak's lines, then lines that only the end has.
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

// Owners of the device's memory at the maximum of its usage.
std::string ledger_line(const LedgerExtremes& ledger, const Terminal& terminal) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> parts;
  for (const LedgerRow& row : ledger_rows(ledger.peak)) {
    if (parts.size() < kMost && !row.part && row.bytes != "0 B") parts.push_back(row.bytes + " " + row.words);
  }
  std::string text =
      fmt::format("{} of the device used {}", bytes_text(ledger.peak.used_bytes), at_text(ledger.peak.time_ns));
  if (ledger.total_bytes)
    text = fmt::format("{} of {} used {}", bytes_text(ledger.peak.used_bytes), format_bytes(*ledger.total_bytes),
                       at_text(ledger.peak.time_ns));
  return fmt::format("{}: {}: {}\n", paint(terminal, Tone::heading, shown(ledger.device)), text,
                     fmt::join(parts, ", "));
}

std::string host_line(const Summary& summary, const Terminal& terminal) {
  std::vector<std::string> parts;
  if (summary.host.rss) parts.push_back("peak RSS " + peak_and_end(*summary.host.rss));
  if (summary.host.most_job_processes.value_or(0) > 1 && summary.host.job_pss) {
    parts.push_back(fmt::format("peak PSS of its {} processes {}", format_count(*summary.host.most_job_processes),
                                format_bytes(summary.host.job_pss->peak)));
  }
  if (summary.pinned) parts.push_back("peak pinned " + format_bytes(summary.pinned->peak));
  if (parts.empty()) return {};
  return fmt::format("{}: {}\n", paint(terminal, Tone::heading, "Host memory"), fmt::join(parts, "; "));
}

std::string host_text(const HostUsage& host, const Terminal& terminal) {
  if (host.empty()) return {};
  std::string text = "\n" + paint(terminal, Tone::heading, "Host memory, sampled") + "\n";
  for (const Fact& part : host_facts(host)) text += fact(part.label, part.value);
  return text;
}

// The call does not contain the size that PyTorch requested.
std::string pinned_text(const std::optional<SampledBytes>& pinned, const Terminal& terminal) {
  if (!pinned) return {};
  return "\n" + paint(terminal, Tone::heading, "Pinned host memory") + "\n" + fact("peak", peak_and_end(*pinned)) +
         fact("requested", kPinnedRequest);
}

}  // namespace

std::string holders_text(const SummaryDevice& device, bool advice, const Terminal& terminal) {
  std::string text;
  const auto add = [&](const std::string& table) { text += (text.empty() || table.empty() ? "" : "\n") + table; };
  if (advice) add(advice_text(device.advice, terminal.all ? 0 : kMaxAdvice, terminal));
  if (!device.categories.empty()) {
    const std::size_t most = terminal.all ? device.categories.size() : kMaxCategories;
    add(categories_text(device.categories, device.unrecorded_at_peak_bytes, most, terminal));
  }
  const HolderWords words = holder_words(device.call_sites, &CallSite::stack, "call site");
  Columns columns({"at peak", "share", "blocks", words.one});
  std::uint64_t others = device.other_call_sites;
  std::uint64_t other_bytes = device.other_bytes;
  for (const CallSite& site : device.call_sites) {
    const auto shown = static_cast<std::size_t>(&site - device.call_sites.data());
    if (!terminal.all && shown >= terminal.rows) {
      ++others;
      other_bytes += site.bytes;
      continue;
    }
    columns.add({format_bytes(site.bytes), share_cell(site.share, terminal), format_count(site.blocks)},
                fitted(site.stack));
  }
  if (others != 0) {
    columns.add({format_bytes(other_bytes), "", "",
                 fmt::format("({} other {})", format_count(others), others == 1 ? words.one : words.several)});
  }
  if (device.unrecorded_at_peak_bytes != 0) {
    columns.add({format_bytes(device.unrecorded_at_peak_bytes), "", "", "(not recorded)"});
  }
  add(columns.text(terminal, 2));
  return text;
}

namespace {

std::string all_text(const Summary& summary, const Terminal& terminal) {
  std::string text;
  for (const LedgerExtremes& ledger : summary.ledgers) text += ledger_text(ledger, terminal);
  text += host_text(summary.host, terminal);
  text += pinned_text(summary.pinned, terminal);
  text += host_ledger_text(summary.host_ledgers, terminal);
  if (!summary.host_ledgers.kills.empty()) text += "\n" + kills_text(summary.host_ledgers.kills, terminal);
  text += out_of_memory_text(summary, terminal);
  return text + "\n" + quality_text(summary.recording.quality, terminal);
}

// Other known facts, in a line each; of the data's quality only the limits of the answer.
std::string short_text(const Summary& summary, const std::string& other_devices, const Terminal& terminal) {
  std::string text = "\n" + other_devices;
  for (const LedgerExtremes& ledger : summary.ledgers) text += ledger_line(ledger, terminal);
  text += host_line(summary, terminal);
  if (!summary.failure && !summary.out_of_memory.empty()) text += out_of_memory_text(summary, terminal).substr(1);
  return text + short_quality_text(summary.recording.quality, terminal);
}

// Reserved memory that was never allocated, whatever else was.
std::uint64_t unused_bytes(const SummaryDevice& device) {
  const std::uint64_t reserved = device.totals.peak_reserved_bytes.value_or(0);
  return reserved - std::min(reserved, device.totals.peak_allocated_bytes);
}

bool is_largely_unused(const SummaryDevice& device) {
  return tidemark::is_largely_unused(device.totals.peak_reserved_bytes.value_or(0), device.totals.peak_allocated_bytes);
}

// The device with most unused memory, and what usually helps; empty if no device has much.
std::string unused_text(const Summary& summary, const Terminal& terminal) {
  const auto most = std::ranges::max_element(summary.devices, {}, unused_bytes);
  if (most == summary.devices.end() || !is_largely_unused(*most)) return "";
  const bool is_expandable =
      summary.recording.allocator_settings.value_or("").find("expandable_segments:True") != std::string::npos;
  return paint(terminal, Tone::warning,
               fmt::format(
                   "Fragmentation: at least {} of {} reserved on {} stayed unused{}", format_bytes(unused_bytes(*most)),
                   format_bytes(*most->totals.peak_reserved_bytes), to_string(most->totals.device),
                   is_expandable ? "" : "; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True often prevents it")) +
         "\n";
}

std::string next_of(const Summary& summary, const Terminal& terminal) {
  const auto has_advice = [](const SummaryDevice& device) { return !device.advice.empty(); };
  if (summary.failure) return next_text(summary.recording, "explain", "why it ran out of memory", terminal);
  if (summary.leaks) return next_text(summary.recording, "leaks", "which call sites leak", terminal);
  if (std::ranges::any_of(summary.devices, is_largely_unused)) {
    return next_text(summary.recording, "fragmentation", "why reserved memory is not used", terminal);
  }
  if (std::ranges::any_of(summary.devices, has_advice)) {
    return next_text(summary.recording, "patterns", "each change, where and why", terminal);
  }
  if (summary.recording.source == SourceKind::pytorch_snapshot) {
    return next_text(summary.recording, "patterns", "changes that would save memory", terminal);
  }
  return next_text(summary.recording, "report", "the whole recording on one page", terminal);
}

}  // namespace

std::string to_text(const Summary& summary, const Terminal& terminal) {
  std::string text;
  if (!terminal.all && !summary.host_ledgers.kills.empty()) {
    text = kills_text(summary.host_ledgers.kills, terminal) + "\n";
  }
  if (summary.failure) {
    text += paint(terminal, Tone::error, verdict_text(*summary.failure)) + "\n" +
            fixes_text(*summary.failure, terminal) + "\n";
  }
  if (summary.leaks && !summary.failure) text += leak_text(*summary.leaks, terminal);
  if (!summary.failure && !summary.leaks) text += unused_text(summary, terminal);
  text += head(summary.recording, terminal) + chosen_blocks_text(summary.recording, true);
  if (terminal.all) text += "\n";
  const auto on_gpu = [](const SummaryDevice& device) {
    return device.totals.device.type != DeviceType::cpu && device.totals.peak_allocated_at_ns.has_value();
  };
  const bool gpu = std::ranges::any_of(summary.devices, on_gpu);
  std::vector<std::string> devices;
  std::string lines;  // of CPUs beside a GPU
  for (const SummaryDevice& device : summary.devices) {
    const bool one_line = !terminal.all && gpu && device.totals.device.type == DeviceType::cpu;
    std::string part = device_text(device, one_line, !summary.failure, terminal);
    if (one_line) {
      lines += part;
    } else {
      devices.push_back(std::move(part));
    }
  }
  text += join_devices(devices);
  if (summary.devices.empty()) text += no_events_text(summary.recording);
  return text + (terminal.all ? all_text(summary, terminal) : short_text(summary, lines, terminal)) +
         next_of(summary, terminal);
}

}  // namespace tidemark
