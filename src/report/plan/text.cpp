#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/plan/plan.h"
#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/plan.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "report/common/text_parts.h"
#include "report/leaks/words.h"

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

// Changes that make the program fit: those that were planned with their need, then advice with its saving.
std::string fitting_changes_text(const PlanNeed& need, std::uint64_t memory_bytes, const Terminal& terminal) {
  constexpr std::size_t kMaxChanges = 3;
  constexpr std::size_t kPlaceWidth = 60;
  std::vector<std::string> lines;
  for (const PlannedChange& change : need.changes) {
    lines.push_back(fmt::format("{}: fits with {} used", printable(change.change), format_bytes(change.bytes)));
  }
  for (const Advice& advice : need.advice) {
    lines.push_back(fmt::format("{}: saves {}", advice_change_at(advice, kPlaceWidth), saving_text(advice)));
  }
  if (lines.empty() && need.model_bytes > memory_bytes) {
    return fmt::format(
        "No batch is small enough: parameters, gradients and optimizer states alone take {} of {}. What helps is a "
        "smaller model, an optimizer with smaller states, or more GPUs (FSDP).\n",
        format_bytes(need.model_bytes), format_bytes(memory_bytes));
  }
  if (lines.empty()) {
    constexpr double kLeastShare = 0.02;
    if (need.batch_share.value_or(0) >= kLeastShare && *need.batch_share < 1) {
      return fmt::format(
          "Fix, estimated: a batch of ~{:.0f}% of this one, if activations are in proportion to it (no planned "
          "change of the command is enough)\n",
          std::floor(*need.batch_share * 100));
    }
    return "No fix was found: no option of the program for its batch or for checkpointing is enough.\n";
  }
  if (lines.size() > kMaxChanges) lines.resize(kMaxChanges);
  std::string text = paint(terminal, Tone::heading, lines.size() == 1 ? "Fix that is enough:" : "Fixes, each enough:");
  for (std::size_t n = 0; n < lines.size(); ++n) text += fmt::format("\n  {}. {}", n + 1, lines[n]);
  return text + "\n";
}

const PlannedDevice* find_leaking(const Plan& plan) {
  const auto leaking = std::ranges::find_if(plan.devices, [](const PlannedDevice& device) {
    // Growth of host memory does not decide whether the program fits.
    return device.leaks != nullptr && std::ranges::any_of(device.leaks->objects, [&](const LeakObject& object) {
             return object.device == device.summary.totals.device;
           });
  });
  return leaking == plan.devices.end() ? nullptr : &*leaking;
}

// A program that leaks fits until its memory is used up.
std::string leaking_text(const Plan& plan, const Terminal& terminal) {
  const PlannedDevice* const leaking = find_leaking(plan);
  if (!plan.fits || leaking == nullptr) return {};
  const Leaks& leaks = *leaking->leaks;
  std::string text = leak_text(leaks, terminal);
  const Device device = leaking->summary.totals.device;
  double rate = 0;
  for (const LeakObject& object : leaks.objects) {
    if (object.device == device) rate += object.growth.bytes_per_step.value;
  }
  if (rate <= 0) return text;
  const double steps = static_cast<double>(leaking->headroom_bytes) / rate;
  constexpr double kMostSteps = 1e9;
  if (steps > kMostSteps) return text;
  return text + fmt::format("  {} per step use up the {} left on {} in about {} more steps\n", rate_text(rate),
                            format_bytes(leaking->headroom_bytes), to_string(device),
                            format_count(static_cast<std::uint64_t>(steps)));
}

}  // namespace

std::string to_text(const Plan& plan, const Terminal& terminal) {
  std::string text = paint(terminal, plan.fits ? Tone::heading : Tone::error, verdict_text(plan)) + "\n";
  if (plan.need)
    text += need_text(*plan.need) + "\n" + fitting_changes_text(*plan.need, plan.facts.memory_bytes, terminal);
  text += leaking_text(plan, terminal);
  for (const PlannedDevice& device : plan.devices) {
    text += device_text(plan, device, terminal);
    // Ranks are alike: only the one with the least headroom lists what holds its memory. Its advice is for the peak at
    // the limit, so it is left out if advice for the whole need is shown above.
    if (&device == &plan.devices.front()) text += "\n" + holders_text(device.summary, !plan.need, terminal);
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
    return text + next_text(first.recording, "explain", "what held the memory when the request failed", terminal);
  }
  const PlannedDevice* const leaking = find_leaking(plan);
  if (leaking != nullptr) {
    return text + next_text(leaking->recording, "leaks", "which call sites leak", terminal);
  }
  const std::uint64_t reserved = first.summary.totals.peak_reserved_bytes.value_or(0);
  if (is_largely_unused(reserved, first.summary.totals.peak_allocated_bytes)) {
    return text + next_text(first.recording, "fragmentation", "why reserved memory is not used", terminal);
  }
  return text + next_text(first.recording, "report", "the recording of this plan as one page", terminal);
}

}  // namespace tidemark
