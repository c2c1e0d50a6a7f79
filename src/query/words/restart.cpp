#include "query/words/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/explain.h"
#include "query/words/host_ledger.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

constexpr std::size_t kPlaceWidth = 60;

// At the start of a sentence; the name of a file stays as it is.
std::string subject_text(const RankRecord& record) {
  std::string text = rank_place(record);
  if (record.recording.source != SourceKind::recording) return "The process of " + text;
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string step_text(const Recurrence& recurrence) {
  if (!recurrence.at_step) return "";
  std::string text = format_count(*recurrence.at_step);
  const bool interval = recurrence.earliest_step && recurrence.latest_step;
  const bool exact = interval && *recurrence.earliest_step == *recurrence.latest_step;
  if (interval && !exact) {
    text += fmt::format(" ({} to {})", format_count(*recurrence.earliest_step), format_count(*recurrence.latest_step));
  }
  return (exact ? "step " : "about step ") + text;
}

std::string leak_reason(const RestartVerdict& verdict, const OomFailure& failure) {
  std::string where;
  if (!failure.leaks.empty()) where = " at " + stack_text(failure.leaks.front().stack, kStackInSentence);
  const double rate = verdict.evidence->leak_bytes_per_step.value;
  return fmt::format("{} a step are kept{}; a new process starts without them and grows as this one did",
                     format_bytes(static_cast<std::uint64_t>(std::max(0.0, rate))), where);
}

std::string larger_step_reason(const FailureEvidence& evidence, const Recurrence& recurrence) {
  const double highest = evidence.step_peaks.empty() ? 0 : *std::ranges::max_element(evidence.step_peaks);
  const std::string again =
      recurrence.at_step ? fmt::format("; data in the same order fail at {} again", step_text(recurrence)) : "";
  return fmt::format(
      "it depends on the order of the data: this step needed {}, the {} before at most {}, as longer inputs do{}",
      format_bytes(evidence.need_bytes), format_count(evidence.step_peaks.size()),
      format_bytes(static_cast<std::uint64_t>(highest)), again);
}

std::string growing_reason(const FailureEvidence& evidence) {
  if (evidence.step_peaks.empty()) return "the peak of the steps rises";
  return fmt::format("the peak of the steps rose from {} to {} in {} steps, and each step frees what it allocates",
                     format_bytes(static_cast<std::uint64_t>(evidence.step_peaks.front())),
                     format_bytes(static_cast<std::uint64_t>(evidence.step_peaks.back())),
                     format_count(evidence.step_peaks.size()));
}

std::string not_recorded_reason(const RestartVerdict& verdict) {
  if (!verdict.evidence || verdict.evidence->from_start) {
    return "no training steps were found in the recording to compare this one with";
  }
  return "the recording began later than the program, and has no complete step before the failure";
}

std::string others_reason(const OomFailure& failure) {
  if (!failure.findings.empty() && failure.findings.front().cause == OomCause::other_process) {
    return "it depends on other processes of the device: " + evidence_text(failure, failure.findings.front());
  }
  return "earlier steps needed as much and had it: it depends on memory outside the recorded blocks";
}

std::string fix_words(const RestartVerdict& verdict, const OomFix& fix) {
  return fix_text(verdict.explanation->failures.front(), fix);
}

}  // namespace

std::string rank_place(const RankRecord& record) {
  const std::string& host = record.recording.process.hostname;
  const std::string device = record.device ? to_string(*record.device) : "host memory";
  return fmt::format("{} ({}{})", process_name(record.recording), host.empty() ? "" : shown(host, kPlaceWidth) + ", ",
                     device);
}

std::string recurrence_text(const Recurrence& recurrence) {
  switch (recurrence.will_recur) {
    case WillRecur::no:
      return "A restart is not ended by it";
    case WillRecur::unknown:
      return "Whether a restart runs out of memory again is unknown";
    case WillRecur::yes:
      break;
  }
  const char* will = recurrence.confidence == Confidence::exact ? "will run" : "will probably run";
  const std::string step = step_text(recurrence);
  return fmt::format("A restart {} out of memory again{}{}", will, step.empty() ? "" : ", at ", step);
}

std::string first_rank_text(const RestartVerdict& verdict) {
  if (!verdict.first) {
    const bool survived =
        std::ranges::any_of(verdict.ranks, [](const RankRecord& record) { return record.end == RankEnd::survived; });
    return survived ? "Requests for memory failed, and the program continued" : "No recorded process ran out of memory";
  }
  const RankRecord& record = verdict.ranks[*verdict.first];
  const bool of_child = record.end == RankEnd::killed && record.killed_pid != record.recording.process.pid;
  std::string text = of_child ? "A process of " + rank_place(record) : subject_text(record);
  const auto failed = std::ranges::count_if(verdict.ranks, [](const RankRecord& one) {
    return one.end == RankEnd::out_of_memory || one.end == RankEnd::killed;
  });
  text += record.end == RankEnd::killed ? " was killed for lack of host memory" : " ran out of memory";
  if (failed > 1) text += fmt::format(" first, then {} more", format_count(static_cast<std::uint64_t>(failed) - 1));
  if (verdict.evidence && verdict.evidence->steps_known && verdict.evidence->from_start) {
    text += verdict.evidence->failed_step == 0
                ? ", before the first step"
                : fmt::format(", in step {}", format_count(verdict.evidence->failed_step));
  }
  return text;
}

std::string reason_text(const RestartVerdict& verdict) {
  const bool explained = verdict.evidence && verdict.explanation && !verdict.explanation->failures.empty();
  static const OomFailure kNone;
  const OomFailure& failure = explained ? verdict.explanation->failures.front() : kNone;
  switch (verdict.recurrence.reason) {
    case RestartReason::no_failure:
      return "the cause of the job's end is not among the recorded requests for memory";
    case RestartReason::survived:
      return "the program caught the failure and continued with further steps";
    case RestartReason::leak:
      return explained ? leak_reason(verdict, failure) : "memory grows from step to step";
    case RestartReason::growing_steps:
      return explained ? growing_reason(*verdict.evidence) : "the peak of the steps rises";
    case RestartReason::setup:
      return "the request came before the first forward pass, and every start makes it";
    case RestartReason::first_steps:
      return "every start makes these steps, and a batch of the same size needs as much";
    case RestartReason::other_phase:
      return "no earlier step reached the call site of this request, as in an evaluation or a checkpoint: it fails "
             "when "
             "the program comes there again";
    case RestartReason::larger_step:
      return explained ? larger_step_reason(*verdict.evidence, verdict.recurrence) : "this step needed more memory";
    case RestartReason::fragmentation:
      return explained && !failure.findings.empty()
                 ? evidence_text(failure, failure.findings.front()) + "; the same requests leave similar gaps"
                 : "cached memory is fragmented";
    case RestartReason::memory_of_others:
      return others_reason(failure);
    case RestartReason::host_memory:
      return "the recording does not show whether the host's memory fills again";
    case RestartReason::not_recorded:
      break;
  }
  return not_recorded_reason(verdict);
}

std::string limits_text(const RestartVerdict& verdict) {
  std::vector<std::string> limits;
  if (verdict.missing_count != 0) {
    constexpr std::size_t kMaxListed = 8;
    const std::size_t listed = std::min(kMaxListed, verdict.missing_ranks.size());
    std::string ranks;
    for (std::size_t index = 0; index < listed; ++index) {
      ranks += fmt::format("{}{}", index == 0 ? "" : ", ", verdict.missing_ranks[index]);
    }
    const std::uint64_t more = verdict.missing_count - listed;
    limits.push_back(fmt::format("no recording of rank{} {}{}, which may have failed earlier",
                                 verdict.missing_count == 1 ? "" : "s", ranks,
                                 more == 0 ? "" : fmt::format(" and {} more", format_count(more))));
  }
  if (verdict.several_hosts) limits.emplace_back("the order is that of the clocks of several machines");
  if (verdict.older_recordings != 0) {
    limits.push_back(fmt::format("{} recordings of earlier attempts left out", format_count(verdict.older_recordings)));
  }
  return fmt::format("{}", fmt::join(limits, "; "));
}

std::string change_text(const RestartVerdict& verdict, const RestartChange& change) {
  if (!change.planned.empty()) return printable(change.planned);
  if (change.fix && verdict.explanation) return fix_words(verdict, *change.fix);
  if (change.advice) return advice_change_at(*change.advice, kPlaceWidth);
  return fmt::format(
      "make the batch of each forward pass {} times smaller, with gradient accumulation over {} times as many",
      change.divisor, change.divisor);
}

std::string change_effect_text(const RestartChange& change) {
  const std::string bytes = (change.confidence == Confidence::exact ? "" : "~") + format_bytes(change.bytes);
  std::string text;
  if (!change.planned.empty()) {
    text = fmt::format("needs {} of each device", bytes);
  } else if (change.kind == RestartChangeKind::allocator_settings) {
    text = fmt::format("makes {} usable", bytes);
  } else if (change.fix && change.fix->kind == OomFixKind::raise_limit) {
    text = "adds " + bytes;
  } else {
    text = "saves " + bytes;
  }
  if (!change.verified_by.empty()) {
    text +=
        change.verified_by == "plan" ? " (planned)" : fmt::format(" (replayed by {})", printable(change.verified_by));
  }
  if (change.until_step) text += fmt::format("; until about step {}", format_count(*change.until_step));
  return text;
}

}  // namespace tidemark
