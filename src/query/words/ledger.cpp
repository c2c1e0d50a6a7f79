#include "query/words/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

std::string process_words(const LedgerLine& line) {
  std::string who;
  switch (line.process_kind) {
    case ProcessKind::recorded:
      who = "the recorded process";
      break;
    case ProcessKind::job:
      who = "same job: " + line.name;
      break;
    case ProcessKind::other:
      who = line.name.empty() ? "another process" : line.name;
      break;
    case ProcessKind::ended:
      who = "a process that has ended";
      break;
    case ProcessKind::other_namespace:
      who = "another container";
      break;
  }
  return fmt::format("{} (pid {})", shown(who), line.pid);
}

std::string share_of_used(double bytes, const LedgerBreakdown& ledger) {
  if (ledger.used_bytes.value_or(0) == 0) return {};
  return share_text(bytes / static_cast<double>(*ledger.used_bytes));
}

std::string share_of_used(const std::optional<std::uint64_t>& bytes, const LedgerBreakdown& ledger) {
  return bytes ? share_of_used(static_cast<double>(*bytes), ledger) : std::string();
}

}  // namespace

std::string line_words(const LedgerLine& line, const LedgerBreakdown& ledger) {
  switch (line.part) {
    case LedgerPart::pytorch:
      return "reserved by PyTorch";
    case LedgerPart::library:
      return shown(line.name);
    case LedgerPart::context: {
      const bool with_libraries = std::find(ledger.caveats.begin(), ledger.caveats.end(),
                                            LedgerCaveat::libraries_in_context) != ledger.caveats.end();
      return with_libraries ? "context, modules and libraries" : "context and modules";
    }
    case LedgerPart::process:
      return process_words(line);
  }
  return {};
}

std::string caveat_words(LedgerCaveat caveat, const LedgerBreakdown& ledger) {
  switch (caveat) {
    case LedgerCaveat::no_samples:
      return "the recording has no GPU samples; `tidemark run` takes them where a GPU driver is available (see "
             "`tidemark doctor`)";
    case LedgerCaveat::device_not_sampled:
      return "none of the sampled GPUs is known to be this device; the program may have set CUDA_VISIBLE_DEVICES "
             "itself";
    case LedgerCaveat::no_sample_yet:
      return "no sample of the device's used memory had been taken by then";
    case LedgerCaveat::used_unknown:
      return "the driver does not report the used memory of this device";
    case LedgerCaveat::no_events:
      return "nothing was recorded on this device";
    case LedgerCaveat::reserved_unknown:
      return "the memory reserved by PyTorch is unknown: no event had reported it by then";
    case LedgerCaveat::allocator_unknown:
      return "the program's index of this device is unknown: only what the driver reports is shown";
    case LedgerCaveat::libraries_in_context:
      return "no driver calls were recorded; `tidemark run --driver on` separates libraries from the context";
    case LedgerCaveat::driver_calls_missing:
      return "some or all driver calls are missing, so the libraries' memory may be wrong; see the data quality in "
             "`tidemark summary`";
    case LedgerCaveat::processes_unknown:
      return "the driver did not list the processes of the device: context and other processes are part of unexplained";
    case LedgerCaveat::process_not_listed:
      return "the driver did not list the recorded process: its context is part of unexplained";
    case LedgerCaveat::process_bytes_unknown:
      return "the driver does not report how much memory the recorded process holds (MIG, containers): its context is "
             "part of unexplained";
    case LedgerCaveat::process_matched:
      return "the recorded process was taken to be the only listed process of another PID namespace that holds enough "
             "memory";
    case LedgerCaveat::process_below_known:
      return "the driver reports less memory for the recorded process than it is known to hold: its context was taken "
             "as 0";
    case LedgerCaveat::other_bytes_unknown:
      return "the driver does not report how much memory some other processes hold: it is part of unexplained";
    case LedgerCaveat::during_driver_call:
      return "a long driver call was reserving or releasing memory at this time: the lines may not match the used "
             "memory";
    case LedgerCaveat::transient_peak:
      return fmt::format("{} were used for a short time, while a long driver call was reserving or releasing memory",
                         bytes_text(ledger.transient_peak_bytes));
  }
  return {};
}

std::string signed_bytes_text(const std::optional<std::int64_t>& bytes) {
  if (!bytes) return "n/a";
  if (*bytes >= 0) return format_bytes(static_cast<std::uint64_t>(*bytes));
  return "-" + format_bytes(0 - static_cast<std::uint64_t>(*bytes));
}

std::string ledger_title(const std::string& device, const std::string& model,
                         const std::optional<std::uint64_t>& total_bytes, const LedgerBreakdown& ledger) {
  std::string title = shown(device);
  if (!model.empty()) title += "  " + shown(model);
  title += fmt::format("  {} used", bytes_text(ledger.used_bytes));
  if (total_bytes) title += " of " + format_bytes(*total_bytes);
  return title + " " + at_text(ledger.time_ns);
}

std::vector<LedgerRow> ledger_rows(const LedgerBreakdown& ledger) {
  std::vector<LedgerRow> rows;
  rows.reserve(ledger.lines.size() + 3);
  for (const LedgerLine& line : ledger.lines) {
    rows.push_back({bytes_text(line.bytes), share_of_used(line.bytes, ledger), line_words(line, ledger)});
    if (line.part != LedgerPart::pytorch || !line.bytes) continue;
    rows.push_back(
        {bytes_text(ledger.allocated_bytes), share_of_used(ledger.allocated_bytes, ledger), "allocated", true});
    rows.push_back({bytes_text(ledger.cached_bytes), share_of_used(ledger.cached_bytes, ledger), "cached", true});
  }
  const auto& rest = ledger.unexplained_bytes;
  rows.push_back(
      {signed_bytes_text(rest), rest ? share_of_used(static_cast<double>(*rest), ledger) : "", "unexplained"});
  return rows;
}

std::vector<std::string> ledger_remarks(const LedgerBreakdown& ledger) {
  std::vector<std::string> remarks;
  if (ledger.managed_bytes.value_or(0) != 0) {
    remarks.push_back(fmt::format("{} of managed memory, not included: how much of it is on the GPU is unknown",
                                  format_bytes(*ledger.managed_bytes)));
  }
  if (ledger.pinned_host_bytes.value_or(0) != 0) {
    remarks.push_back(fmt::format("{} of pinned host memory, not included", format_bytes(*ledger.pinned_host_bytes)));
  }
  return remarks;
}

}  // namespace tidemark
