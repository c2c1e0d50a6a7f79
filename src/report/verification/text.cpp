#include "report/common/text.h"

#include <fmt/format.h>

#include "analyze/plan/verification.h"
#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string verdict(const Verification& verification) {
  if (verification.equal) return "the plan is what the GPU did, event by event";
  return fmt::format("the peaks of the plan are {} {}% of the real ones",
                     verification.within_tolerance ? "within" : "not within", kVerifyTolerance * 100);
}

std::string both(std::uint64_t planned, std::uint64_t real, std::string (*text)(std::uint64_t)) {
  if (planned == real) return text(planned) + ", both";
  return fmt::format("{} planned, {} real ({:+.3f}%)", text(planned), text(real),
                     real == 0 ? 0.0 : (static_cast<double>(planned) / static_cast<double>(real) - 1) * 100);
}

std::string event_text(const std::optional<Event>& event) {
  if (!event) return "no more events";
  return fmt::format("{} of {}, {} reserved then", name_in(kEventKindNames, event->kind), exact_text(event->size),
                     exact_text(event->total_reserved));
}

}  // namespace

std::string to_text(const Verification& verification, const Terminal& terminal) {
  std::string text =
      paint(terminal, verification.within_tolerance ? Tone::heading : Tone::error, verdict(verification)) + "\n";
  for (const VerifiedDevice& device : verification.devices) {
    const std::string rank = device.rank ? fmt::format(", rank {}", *device.rank) : "";
    text += "\n" + paint(terminal, Tone::heading, to_string(device.device) + rank) + "\n";
    text += fact("peak allocated", both(device.planned.allocated, device.real.allocated, exact_text));
    text += fact("peak reserved", both(device.planned.reserved, device.real.reserved, exact_text));
    text += fact("allocations", both(device.planned.allocations, device.real.allocations, format_count));
    if (!device.difference) continue;
    text += fact("first difference", fmt::format("event {} of {}", format_count(device.difference->index + 1),
                                                 format_count(device.event_count)));
    text += fact("  planned", event_text(device.difference->planned));
    text += fact("  real", event_text(device.difference->real));
  }
  return text;
}

}  // namespace tidemark
