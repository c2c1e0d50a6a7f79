#include "report/words/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/words/printable.h"
#include "report/words/recording.h"

namespace tidemark {
namespace {

constexpr std::size_t kNameWidth = 100;

std::string process_words(const LedgerLine& line) {
  std::string who;
  switch (line.process_kind) {
    case ProcessKind::recorded:
      who = "the recorded process";
      break;
    case ProcessKind::job:
      who = "of this job: " + line.name;
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
  return fmt::format("{} (pid {})", fit(printable(who), kNameWidth), line.pid);
}

}  // namespace

std::string line_words(const LedgerLine& line, const LedgerBreakdown& ledger) {
  switch (line.part) {
    case LedgerPart::pytorch:
      return "reserved by PyTorch";
    case LedgerPart::library:
      return fit(printable(line.name), kNameWidth);
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

const char* name_of(LedgerPart part) {
  switch (part) {
    case LedgerPart::pytorch:
      return "pytorch";
    case LedgerPart::library:
      return "library";
    case LedgerPart::context:
      return "context";
    case LedgerPart::process:
      return "process";
  }
  return "";
}

const char* name_of(ProcessKind kind) {
  switch (kind) {
    case ProcessKind::recorded:
      return "recorded";
    case ProcessKind::job:
      return "job";
    case ProcessKind::other:
      return "other";
    case ProcessKind::ended:
      return "ended";
    case ProcessKind::other_namespace:
      return "other_namespace";
  }
  return "";
}

const char* name_of(LedgerCaveat caveat) {
  switch (caveat) {
    case LedgerCaveat::no_samples:
      return "no_samples";
    case LedgerCaveat::device_not_sampled:
      return "device_not_sampled";
    case LedgerCaveat::no_sample_yet:
      return "no_sample_yet";
    case LedgerCaveat::used_unknown:
      return "used_unknown";
    case LedgerCaveat::no_events:
      return "no_events";
    case LedgerCaveat::reserved_unknown:
      return "reserved_unknown";
    case LedgerCaveat::allocator_unknown:
      return "allocator_unknown";
    case LedgerCaveat::libraries_in_context:
      return "libraries_in_context";
    case LedgerCaveat::driver_calls_missing:
      return "driver_calls_missing";
    case LedgerCaveat::processes_unknown:
      return "processes_unknown";
    case LedgerCaveat::process_not_listed:
      return "process_not_listed";
    case LedgerCaveat::process_bytes_unknown:
      return "process_bytes_unknown";
    case LedgerCaveat::process_taken:
      return "process_taken";
    case LedgerCaveat::process_below_held:
      return "process_below_held";
    case LedgerCaveat::other_bytes_unknown:
      return "other_bytes_unknown";
    case LedgerCaveat::slow_call:
      return "slow_call";
    case LedgerCaveat::transient_peak:
      return "transient_peak";
  }
  return "";
}

std::string caveat_words(LedgerCaveat caveat, const LedgerBreakdown& ledger) {
  switch (caveat) {
    case LedgerCaveat::no_samples:
      return "there are no samples of GPUs: recordings of `tidemark run` have them where a driver answers "
             "(`tidemark doctor` says more)";
    case LedgerCaveat::device_not_sampled:
      return "none of the sampled GPUs is known to be this device: the program may have set CUDA_VISIBLE_DEVICES "
             "itself";
    case LedgerCaveat::no_sample_yet:
      return "no sample says how much of the device was used by then";
    case LedgerCaveat::used_unknown:
      return "the driver does not say how much of the device is used";
    case LedgerCaveat::no_events:
      return "nothing was recorded on this device: there is no moment to look at";
    case LedgerCaveat::reserved_unknown:
      return "what PyTorch had reserved is not known: no event had told it by then";
    case LedgerCaveat::allocator_unknown:
      return "which of the program's devices this is is not known: only what the driver says of it is shown";
    case LedgerCaveat::libraries_in_context:
      return "no calls to the driver were recorded: `tidemark run --driver on` tells libraries from the context";
    case LedgerCaveat::driver_calls_missing:
      return "calls to the driver are missing, in part or whole, so libraries may hold more or less: see the data "
             "quality in `tidemark summary`";
    case LedgerCaveat::processes_unknown:
      return "the driver did not say who used the device: context and other processes are part of unexplained";
    case LedgerCaveat::process_not_listed:
      return "the recorded process is not among the processes that the driver lists: its context is part of "
             "unexplained";
    case LedgerCaveat::process_bytes_unknown:
      return "the driver does not say how much this process holds (MIG, a container): its context is part of "
             "unexplained";
    case LedgerCaveat::process_taken:
      return "the one process of another PID namespace that holds enough was taken for the recorded one";
    case LedgerCaveat::process_below_held:
      return "the driver says that this process held less than is known of it: the context was taken as 0";
    case LedgerCaveat::other_bytes_unknown:
      return "the driver does not say how much some other processes hold: that is part of unexplained";
    case LedgerCaveat::slow_call:
      return "a long call to the driver was taking memory or giving it back at this time: the lines may not have it "
             "yet, or "
             "no more";
    case LedgerCaveat::transient_peak:
      return fmt::format(
          "{} were used for a moment, while a long call to the driver was taking memory or giving it back",
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
  std::string title = printable(device);
  if (!model.empty()) title += "  " + fit(printable(model), kNameWidth);
  title += fmt::format("  {} used", bytes_text(ledger.used_bytes));
  if (total_bytes) title += " of " + format_bytes(*total_bytes);
  return title + " " + at_text(ledger.time_ns);
}

}  // namespace tidemark
