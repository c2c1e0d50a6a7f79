// The verdict on a restart in at most fifteen lines: the answer, the changes, the evidence, the next command.
#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/explain.h"
#include "query/words/host_ledger.h"
#include "query/words/printable.h"
#include "query/words/restart.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxShownChanges = 3;

const char* title_of(const std::optional<bool>& enough, RestartReason reason) {
  if (enough == true) return "Changes that are enough, the smallest first:";
  if (!enough) return "Changes that let the request pass, the smallest first (whether later ones pass is unknown):";
  return reason == RestartReason::leak ? "Changes that only postpone it:" : "Changes that are not enough:";
}

std::string restart_changes_text(const RestartVerdict& verdict, const Terminal& terminal) {
  std::string text;
  const std::size_t shown_count =
      terminal.all ? verdict.changes.size() : std::min(kMaxShownChanges, verdict.changes.size());
  for (std::size_t n = 0; n < shown_count; ++n) {
    const RestartChange& change = verdict.changes[n];
    if (n == 0 || change.enough != verdict.changes[n - 1].enough) {
      text += paint(terminal, Tone::heading, title_of(change.enough, verdict.recurrence.reason)) + "\n";
    }
    text += fmt::format("  {}. {}: {}\n", n + 1, change_text(verdict, change), change_effect_text(change));
  }
  if (text.empty() && verdict.first) text = "No change is known that would be enough.\n";
  return text;
}

std::string next_attempt_text(const RestartVerdict& verdict) {
  if (!verdict.not_applied.empty()) return fmt::format("Not applied: {}\n", printable(verdict.not_applied));
  if (!verdict.next_attempt) return "";
  std::string command;
  for (const auto& [name, value] : verdict.next_attempt->environment) {
    command += fmt::format("{}={} ", name, shell_argument(value));
  }
  for (const std::string& word : verdict.next_attempt->command) command += shell_argument(word) + " ";
  if (!command.empty()) command.pop_back();
  return fmt::format("Next attempt, with change {}: {}\n", verdict.next_attempt->change + 1, command);
}

std::string evidence_lines(const RestartVerdict& verdict) {
  std::string text;
  if (verdict.evidence && verdict.explanation && !verdict.explanation->failures.empty()) {
    text += verdict_text(verdict.explanation->failures.front()) + "\n";
  }
  if (verdict.kill) text += kill_headline(*verdict.kill) + "\n";
  const auto recorded = verdict.ranks.size();
  const auto without = std::ranges::count(verdict.ranks, RankEnd::no_failure, &RankRecord::end);
  if (recorded > 1) {
    text += fmt::format("{} processes recorded, {} of them without a failed request\n", format_count(recorded),
                        format_count(static_cast<std::uint64_t>(without)));
  }
  if (const std::string limits = limits_text(verdict); !limits.empty()) text += "Note: " + limits + "\n";
  return text;
}

Tone recurrence_tone(WillRecur will_recur) {
  return will_recur == WillRecur::yes ? Tone::error : will_recur == WillRecur::no ? Tone::heading : Tone::warning;
}

}  // namespace

std::string to_text(const RestartVerdict& verdict, const Terminal& terminal) {
  std::string text =
      paint(terminal, recurrence_tone(verdict.recurrence.will_recur), recurrence_text(verdict.recurrence)) + "\n";
  text += first_rank_text(verdict) + "\n";
  text += fmt::format("Reason: {}\n", reason_text(verdict));
  text += restart_changes_text(verdict, terminal) + next_attempt_text(verdict) + evidence_lines(verdict);
  if (verdict.first) {
    const RecordingInfo& recording = verdict.ranks[*verdict.first].recording;
    const char* command = verdict.recurrence.reason == RestartReason::leak ? "leaks" : "explain";
    return text + next_text(recording, command,
                            verdict.recurrence.reason == RestartReason::leak
                                ? "what leaks"
                                : "the request, the memory at that time, all fixes",
                            terminal);
  }
  if (verdict.ranks.empty()) return text;
  return text + next_text(verdict.ranks.front().recording, "summary", "what held the peak", terminal);
}

}  // namespace tidemark
