#include <algorithm>
#include <tuple>

#include "analyze/restart/restart.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kMaxDivisor = 64;

// Memory that is kept by mistake, and grows again whatever else is freed: the leak's own fix is listed instead.
bool is_of_leak(AdviceKind kind) {
  return kind == AdviceKind::retained_graph || kind == AdviceKind::kept_over_steps;
}

RestartChangeKind change_kind_of(const OomFix& fix) {
  switch (fix.kind) {
    case OomFixKind::settings:
    case OomFixKind::expandable:
      return RestartChangeKind::allocator_settings;
    case OomFixKind::raise_limit:
    case OomFixKind::free_device:
      return RestartChangeKind::limit;
    default:
      return RestartChangeKind::program;
  }
}

class ChangeFinder {
 public:
  ChangeFinder(const OomFailure& failure, const FailureEvidence& evidence, const Recurrence& recurrence,
               const std::string& simulated_by)
      : failure_(failure), evidence_(evidence), recurrence_(recurrence), simulated_by_(simulated_by) {}

  std::vector<RestartChange> find() {
    for (const OomFix& fix : failure_.fixes) add_fix(fix);
    for (const OomAdvice& advice : failure_.advice) add_advice(advice);
    if (!leaks()) add_batch();
    sort_restart_changes(changes_);
    return std::move(changes_);
  }

 private:
  [[nodiscard]] bool leaks() const { return recurrence_.reason == RestartReason::leak; }

  // A step like this one was complete before, so that nothing larger comes later in it.
  [[nodiscard]] bool step_is_known() const {
    return !evidence_.step_peaks.empty() && (leaks() || recurrence_.reason == RestartReason::fragmentation ||
                                             recurrence_.reason == RestartReason::memory_of_others);
  }
  // Whether a change that lets the request pass is enough for the run.
  [[nodiscard]] std::optional<bool> if_request_passes() const {
    if (leaks()) return false;
    return step_is_known() ? std::optional(true) : std::nullopt;
  }

  RestartChange& add(RestartChangeKind kind, std::uint64_t bytes, bool certain) {
    RestartChange& change = changes_.emplace_back();
    change.kind = kind;
    change.bytes = bytes;
    change.enough = if_request_passes();
    change.confidence = certain && change.enough ? Confidence::exact : Confidence::estimated;
    const double rate = evidence_.leak_bytes_per_step.value;
    if (leaks() && recurrence_.at_step && rate > 0) {
      change.until_step = *recurrence_.at_step + static_cast<std::uint64_t>(static_cast<double>(bytes) / rate);
    }
    return change;
  }

  void add_fix(const OomFix& fix) {
    // Which blocks to free is no decision of a user, and a smaller request is what a smaller batch makes.
    if (fix.kind == OomFixKind::free_blocks || fix.kind == OomFixKind::smaller_request) return;
    RestartChange& change = add(change_kind_of(fix), fix.bytes, fix.certain);
    change.fix = fix;
    if (!fix.certain && !leaks()) change.enough.reset();
    if (fix.kind == OomFixKind::stop_leak) {
      change.enough = true;
      change.until_step.reset();
    }
    if (fix.kind == OomFixKind::settings) {
      change.verified_by = simulated_by_;
      change.confidence = Confidence::exact;
    }
  }

  void add_advice(const OomAdvice& advice) {
    if (advice.suffices == false || (leaks() && is_of_leak(advice.kind))) return;
    RestartChange& change = add(RestartChangeKind::program, advice.avoidable_peak_bytes, false);
    if (!advice.suffices && !leaks()) change.enough.reset();
    change.confidence =
        advice.confidence == Confidence::exact && change.enough ? Confidence::exact : Confidence::estimated;
    change.advice = advice;
  }

  // Halves until what no longer is allocated is as much as was missing.
  void add_batch() {
    const std::uint64_t missing = failure_.enough_bytes();
    for (std::uint64_t divisor = 2; divisor <= kMaxDivisor; divisor *= 2) {
      const std::uint64_t freed = evidence_.of_batch_bytes - evidence_.of_batch_bytes / divisor;
      if (freed < missing) continue;
      RestartChange& change = add(RestartChangeKind::batch, freed, false);
      change.divisor = divisor;
      return;
    }
  }

  const OomFailure& failure_;
  const FailureEvidence& evidence_;
  const Recurrence& recurrence_;
  const std::string& simulated_by_;
  std::vector<RestartChange> changes_;
};

}  // namespace

std::vector<RestartChange> find_restart_changes(const OomFailure& failure, const FailureEvidence& evidence,
                                                const Recurrence& recurrence, const std::string& simulated_by) {
  return ChangeFinder(failure, evidence, recurrence, simulated_by).find();
}

void sort_restart_changes(std::vector<RestartChange>& changes) {
  const auto rank = [](const RestartChange& change) {
    const int certainty = change.enough == true ? 0 : change.enough ? 2 : 1;
    return std::tuple(certainty, change.verified_by.empty(), change.kind);
  };
  std::ranges::stable_sort(changes, {}, rank);
}

}  // namespace tidemark
