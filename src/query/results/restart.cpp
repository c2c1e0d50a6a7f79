#include "query/words/restart.h"

#include <optional>
#include <string>
#include <vector>

#include "query/results/common.h"
#include "query/results/results.h"
#include "query/words/explain.h"

namespace tidemark {
namespace {

struct OfChange {
  const RestartVerdict* verdict = nullptr;
  const RestartChange* change = nullptr;
};

// The kind that `explain` has for it.
std::optional<std::string> detail_of(const RestartChange& change) {
  if (change.fix) return std::string(name_of(change.fix->kind));
  if (change.advice) return std::string(name_of(change.advice->kind));
  return std::nullopt;
}

std::optional<std::string> settings_of(const RestartChange& change) {
  if (change.kind != RestartChangeKind::allocator_settings || !change.fix) return std::nullopt;
  return change.fix->settings.empty() ? "expandable_segments:True" : change.fix->settings;
}

template <typename Visitor>
void describe(Visitor& v, const OfChange& of) {
  const RestartChange& change = value_or_none(of.change);
  const RestartVerdict& verdict = value_or_none(of.verdict);
  v.type("RestartChange", "A change for the next attempt.");
  v.field("kind", named<kRestartChangeKindNames>(change.kind), "the smallest change first");
  v.field("detail", detail_of(change), "its kind in `explain`: of a fix or of advice");
  v.field(
      "text", [&] { return change_text(verdict, change); }, "what to change");
  v.field("bytes", change.bytes, "that it saves or makes usable; of a planned change what a device needs with it");
  v.field("enough", change.enough, "null: unknown, because later requests of the step are");
  v.field("until_step", change.until_step, "of a leak that goes on: about when memory runs out then");
  v.field("confidence", named<kConfidenceNames>(change.confidence), "of its bytes and of `enough`");
  v.field("verified_by", known_text(change.verified_by),
          R"(the allocator that replayed it, "PyTorch 2.11.0", or "plan")");
  v.field("allocator_settings", settings_of(change), "for PYTORCH_ALLOC_CONF");
  v.field("batch_divisor", when(change.divisor > 1, change.divisor), "the batch is divided by it");
  v.field("stack", change.advice ? known(change.advice->stack) : nullptr, "of advice");
}

struct OfEvidence {
  const RestartVerdict* verdict = nullptr;
};
template <typename Visitor>
void describe(Visitor& v, const OfEvidence& of) {
  const RestartVerdict& verdict = value_or_none(of.verdict);
  const bool known = verdict.evidence && verdict.explanation && !verdict.explanation->failures.empty();
  static const OomFailure kNone;
  static const FailureEvidence kNoEvidence;
  const OomFailure& failure = known ? verdict.explanation->failures.front() : kNone;
  const FailureEvidence& evidence = verdict.evidence ? *verdict.evidence : kNoEvidence;
  v.type("RestartEvidence", "The failed request of the first rank, and the steps before it.");
  v.field(
      "message", [&] { return verdict_text(failure); }, "what failed and why, a sentence");
  v.field("cause", when(failure.cause.has_value(), named<kOomCauseNames>(failure.cause.value_or(OomCause::demand))),
          "as in `explain`; null: not known");
  v.field("requested_bytes", failure.request.bytes);
  v.field("missing_bytes", failure.missing);
  v.field("step", when(evidence.steps_known, evidence.failed_step), "from 1; 0: before the first; null: not known");
  v.field("step_is_exact", evidence.steps_exact, "otherwise it may be off by one");
  v.field("from_start", evidence.from_start, "otherwise the recording is the last part of a longer one");
  v.field("complete_step_count", evidence.step_peaks.size());
  v.field("need_bytes", evidence.need_bytes, "allocated in recorded blocks, and the request");
  v.field("highest_step_peak_bytes",
          when(!evidence.step_peaks.empty(),
               [&] {
                 double highest = 0;
                 for (const double peak : evidence.step_peaks) highest = peak > highest ? peak : highest;
                 return static_cast<std::uint64_t>(highest);
               }),
          "of the earlier, complete steps, in recorded blocks");
  v.field("leaked_bytes", when(evidence.leaked_bytes != 0, evidence.leaked_bytes));
  v.field("leak_bytes_per_step", when(evidence.leaked_bytes != 0, evidence.leak_bytes_per_step.value));
}

}  // namespace

template <typename Visitor>
void describe(Visitor& v, const RankRecord& record) {
  v.type("RestartRank", "A recorded process of the job, and how it ended.");
  v.field("file", record.recording.path);
  v.field("rank", record.recording.process.rank);
  v.field("pid", record.recording.process.pid);
  v.field("hostname", known_text(record.recording.process.hostname));
  v.field("end", named<kRankEndNames>(record.end), "survived: it continued with further steps after a failed request");
  v.field("device", when(record.device.has_value(), [&] { return to_string(*record.device); }),
          "of the last failed request; null: the host, or none failed");
  v.field("requested_bytes", when(record.end == RankEnd::out_of_memory, record.requested_bytes));
  v.field("killed_pid", record.killed_pid, "itself, or a process that it started");
  v.field("failed_at_ns", record.failed_ns, "of the last failed request, or when it was found killed");
  v.field("failed_wall_ns", record.failed_wall_ns(), "Unix time");
}

template <typename Visitor>
void describe(Visitor& v, const ChangedArgument& argument) {
  v.type("ChangedArgument", "An argument of the next attempt's command.");
  v.field("name", argument.name, R"("batch", "accumulation" or "checkpointing")");
  v.field("option", argument.option);
  v.field("was", argument.was, "null: the command did not have it");
  v.field("value", known_text(argument.value), "null: a flag");
}

template <typename Visitor>
void describe(Visitor& v, const NextAttempt& next) {
  Keyed<std::string> environment;
  for (const auto& [name, value] : next.environment) environment.emplace_back(name, value);
  v.type("NextAttempt", "What a launcher can start next; tidemark starts nothing.");
  v.field("change", next.change, "index into `changes`");
  v.field("changed_arguments", next.arguments);
  v.field("environment", environment, "variables to set");
  v.field("command", next.command, "the changed command");
}

template <typename Visitor>
void describe(Visitor& v, const RestartVerdict& verdict) {
  std::vector<OfChange> changes;
  for (const RestartChange& change : verdict.changes) changes.push_back({&verdict, &change});
  const bool failed = verdict.first && *verdict.first < verdict.ranks.size();
  v.type("RestartVerdict", "Whether a job that ran out of memory will do so again, and what to change.");
  v.field("will_recur", named<kWillRecurNames>(verdict.recurrence.will_recur));
  v.field(
      "at_step", verdict.recurrence.at_step,
      "from 1, if the program starts from the beginning; with `unknown` only if the same data come in the same order");
  v.field("earliest_step", verdict.recurrence.earliest_step);
  v.field("latest_step", verdict.recurrence.latest_step);
  v.field("confidence", named<kConfidenceNames>(verdict.recurrence.confidence),
          "exact: each run does the same; estimated: likely");
  v.field("reason", named<kRestartReasonNames>(verdict.recurrence.reason));
  v.field(
      "message",
      [&] {
        return first_rank_text(verdict) + ". " + recurrence_text(verdict.recurrence) + ": " + reason_text(verdict) +
               ".";
      },
      "the verdict in sentences");
  v.field("first", failed ? &verdict.ranks[*verdict.first] : nullptr, "the process that ran out of memory first");
  v.field("evidence", when(verdict.evidence.has_value(), OfEvidence{&verdict}),
          "null: no request failed, or the recording could not be examined");
  v.field("changes", changes, "enough ones first, then the smallest change first");
  v.field("next_attempt", verdict.next_attempt, "with `--apply`; null: no change could be applied");
  v.field("not_applied", known_text(verdict.not_applied), "why there is no next attempt");
  v.field("world_size", verdict.world_size);
  v.field("missing_ranks", verdict.missing_ranks, "without a recording, at most 64");
  v.field("missing_rank_count", verdict.missing_count);
  v.field("older_recording_count", verdict.older_recordings, "of the folder, of earlier attempts: not used");
  v.field("ranks", verdict.ranks, "by rank");
}
TIDEMARK_DESCRIBED(RestartVerdict);

}  // namespace tidemark
