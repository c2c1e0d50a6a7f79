#include "report/common/text.h"

#include <fmt/format.h>

#include "analyze/plan/plan.h"
#include "base/units.h"
#include "query/words/plan.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string device_text(const Plan& plan, const PlannedDevice& device, const Terminal& terminal) {
  const DeviceSummary& totals = device.summary.totals;
  std::string title = to_string(totals.device);
  if (plan.devices.size() > 1) title += ", " + process_name(device.recording);
  std::string text = "\n" + paint(terminal, Tone::heading, title) + "\n";
  text += fact("peak allocated", exact_text(totals.peak_allocated_bytes));
  text += fact("peak reserved", exact_text(totals.peak_reserved_bytes.value_or(0)));
  const char* const whose =
      device.process_count > 1 ? " by all its processes, with their contexts" : " with context and libraries";
  text += fact("device used", format_bytes(device.device_used_bytes) + whose);
  for (const PlannedLibrary& library : device.libraries) {
    text += fact("", fmt::format("of that at most {} taken by {} itself", format_bytes(library.peak_bytes),
                                 printable(library.name)));
  }
  if (device.fits) text += fact("headroom", format_bytes(device.headroom_bytes));
  if (totals.out_of_memory_count != 0) text += fact("out of memory", format_count(totals.out_of_memory_count));
  return text;
}

}  // namespace

std::string to_text(const Plan& plan, const Terminal& terminal) {
  std::string text = paint(terminal, plan.fits ? Tone::heading : Tone::error, verdict_text(plan)) + "\n";
  if (plan.need) text += need_text(*plan.need) + "\n";
  for (const PlannedDevice& device : plan.devices) {
    text += device_text(plan, device, terminal);
    // Ranks are alike: what holds the memory is shown of the one with the least headroom.
    if (&device == &plan.devices.front()) text += "\n" + holders_text(device.summary, true, terminal);
  }
  if (plan.pinned_bytes != 0) {
    text += "\n" + paint(terminal, Tone::heading, "Pinned host memory") + "\n";
    text += fact(plan.facts.processes.size() > 1 ? "peaks, summed" : "peak", format_bytes(plan.pinned_bytes));
    text += fact("requested", kPinnedRequest);
  }
  text += "\n" + paint(terminal, Tone::heading, "Uncertainty") + "\n";
  for (const std::string& sentence : uncertainties(plan)) text += "  " + sentence + "\n";
  if (plan.devices.empty()) return text;
  const PlannedDevice& first = plan.devices.front();
  if (first.summary.totals.out_of_memory_count != 0) {
    return text + next_text(first.recording, "explain", "fixes that would have been enough", terminal);
  }
  return text + next_text(first.recording, "report", "the recording of this plan as one page", terminal);
}

}  // namespace tidemark
