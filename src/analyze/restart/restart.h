// One verdict for a job that ran out of memory: which rank was first, why, whether a restart will run out of memory
// again and at about which step, and the changes that prevent it. docs/restart.md has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/trend.h"
#include "analyze/ledger/host_ledger.h"
#include "analyze/oom/explain.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// How a recorded process ended, as far as memory decides it.
enum class RankEnd : std::uint8_t {
  no_failure,     ///< no request failed: it ended, or was ended, for another reason
  out_of_memory,  ///< a request for memory failed
  killed,         ///< the kernel killed the process, or one that it started, for lack of host memory
  survived,       ///< requests failed, and the program continued with further training steps
};
inline constexpr EnumName<RankEnd> kRankEndNames[] = {{RankEnd::no_failure, "no_failure"},
                                                      {RankEnd::out_of_memory, "out_of_memory"},
                                                      {RankEnd::killed, "killed"},
                                                      {RankEnd::survived, "survived"}};

/// One recorded process of the job.
struct RankRecord {
  RecordingInfo recording;
  RankEnd end = RankEnd::no_failure;
  std::optional<Device> device;            ///< out_of_memory: of the last failed request; nullopt: the host
  std::uint64_t requested_bytes = 0;       ///< out_of_memory
  std::optional<std::int64_t> killed_pid;  ///< killed: itself, or a process of the program without a recording
  std::optional<std::uint64_t> failed_ns;  ///< when it failed or was found killed, since the recording's start

  /// Unix time; nullopt if the recording has no wall clock.
  [[nodiscard]] std::optional<std::uint64_t> failed_wall_ns() const {
    const auto& start = recording.process.start_wall_ns;
    return start && failed_ns ? std::optional(*start + *failed_ns) : std::nullopt;
  }
};

/// `recording`: of `overview`. `kills`: as the recording contains them, of any process of the job.
[[nodiscard]] RankRecord rank_record(const Overview& overview, RecordingInfo recording,
                                     const std::vector<HostKill>& kills);

/// Of recordings in one folder, those of the newest attempt of the job, in their order: for each rank the newest main
/// process, of the world size of the newest of all; processes without a rank only if none has one, the newest; and
/// their children.
[[nodiscard]] std::vector<RankRecord> newest_attempt(std::vector<RankRecord> records);

enum class WillRecur : std::uint8_t { unknown, no, yes };
inline constexpr EnumName<WillRecur> kWillRecurNames[] = {
    {WillRecur::unknown, "unknown"}, {WillRecur::no, "no"}, {WillRecur::yes, "yes"}};

/// Why a restart will run out of memory again, or why that is not known.
enum class RestartReason : std::uint8_t {
  no_failure,        ///< no recorded process ran out of memory
  survived,          ///< the program continues after such a failure
  leak,              ///< memory that grows from step to step; a new process grows as this one did
  growing_steps,     ///< the peak of the steps rises from step to step, and each step frees what it allocated
  setup,             ///< before the first forward pass: what every start does
  first_steps,       ///< in the first or second step: what every start does
  other_phase,       ///< at a call site that no earlier step reached, such as an evaluation or a checkpoint
  larger_step,       ///< this step needed more than all earlier ones, at call sites that they reached too
  fragmentation,     ///< the cached memory would have been enough
  memory_of_others,  ///< other processes, or memory outside PyTorch, took what earlier steps had
  host_memory,       ///< the kernel killed the process for lack of host memory
  not_recorded,      ///< the recording does not contain what decides it
};
inline constexpr EnumName<RestartReason> kRestartReasonNames[] = {{RestartReason::no_failure, "no_failure"},
                                                                  {RestartReason::survived, "survived"},
                                                                  {RestartReason::leak, "leak"},
                                                                  {RestartReason::growing_steps, "growing_steps"},
                                                                  {RestartReason::setup, "setup"},
                                                                  {RestartReason::first_steps, "first_steps"},
                                                                  {RestartReason::other_phase, "other_phase"},
                                                                  {RestartReason::larger_step, "larger_step"},
                                                                  {RestartReason::fragmentation, "fragmentation"},
                                                                  {RestartReason::memory_of_others, "memory_of_others"},
                                                                  {RestartReason::host_memory, "host_memory"},
                                                                  {RestartReason::not_recorded, "not_recorded"}};

/// What the recording of a failure contains for the question whether it recurs. Steps are counted from 1, from the
/// start of the process.
struct FailureEvidence {
  bool steps_known = false;        ///< training steps were found, or counted by the optimizer's passes
  bool steps_exact = false;        ///< each begins at a mark; otherwise the number may be off by one
  bool from_start = true;          ///< otherwise the recording began later, or is the last part of a longer one
  std::uint64_t failed_step = 0;   ///< the step of the failure; 0: before the first
  std::uint64_t steps_after = 0;   ///< steps that began after it
  bool ran_forward = false;        ///< a forward pass came before
  bool trained = false;            ///< a backward pass or a step of the optimizer came before
  bool keeps_most = false;         ///< most blocks until then are alive at the failure, as when a model is loaded
  bool new_call_site = false;      ///< no earlier step allocated at the stack of the failed request
  bool outside_training = false;   ///< the advice recognizes an evaluation or a checkpoint
  std::uint64_t need_bytes = 0;    ///< recorded blocks alive at the failure, and the request
  std::vector<double> step_peaks;  ///< of the earlier, complete steps: recorded blocks alive, bytes on the device
  std::optional<OomCause> cause;   ///< the main cause, also if it is not certain
  bool cause_is_certain = false;
  std::uint64_t leaked_bytes = 0;     ///< OomCause::leak
  Slope leak_bytes_per_step;          ///< of all leaks, with its 95% interval
  std::uint64_t leak_first_step = 0;  ///< the first one that left memory
  std::uint64_t of_batch_bytes = 0;   ///< OomFailure::of_batch, and the request if it grows with the batch too
};

/// `failure`: of analyze_explain() on this store; a failure that the store does not contain has no evidence.
[[nodiscard]] FailureEvidence examine_failure(const Store& store, const Attribution& attribution,
                                              const OomFailure& failure);

/// The answer. Steps as in FailureEvidence.
struct Recurrence {
  WillRecur will_recur = WillRecur::unknown;
  RestartReason reason = RestartReason::not_recorded;
  Confidence confidence = Confidence::unknown;  ///< exact: each run does the same; estimated: likely
  /// The step of the next failure, if the program starts from the beginning. WillRecur::unknown: only if the same data
  /// come in the same order.
  std::optional<std::uint64_t> at_step;
  std::optional<std::uint64_t> earliest_step;  ///< with 95% confidence for leaks
  std::optional<std::uint64_t> latest_step;
};

[[nodiscard]] Recurrence decide_recurrence(const FailureEvidence& evidence);

/// How large a change is for its user: the smallest first.
enum class RestartChangeKind : std::uint8_t {
  allocator_settings,  ///< a variable of the environment
  batch,               ///< a smaller batch in each forward pass
  planned,             ///< another change of the command, found by planning
  limit,               ///< a limit of the process raised, or other memory of the device freed
  program,             ///< a change of the program
};
inline constexpr EnumName<RestartChangeKind> kRestartChangeKindNames[] = {
    {RestartChangeKind::allocator_settings, "allocator_settings"},
    {RestartChangeKind::batch, "batch"},
    {RestartChangeKind::planned, "planned"},
    {RestartChangeKind::limit, "limit"},
    {RestartChangeKind::program, "program"}};

struct RestartChange {
  RestartChangeKind kind = RestartChangeKind::program;
  std::optional<OomFix> fix;        ///< as `explain` found it
  std::optional<OomAdvice> advice;  ///< as `explain` found it
  std::uint64_t divisor = 1;        ///< batch: the batch is divided by it
  std::string planned = {};         ///< as PlannedChange::change; with its kind, batch or planned
  std::uint64_t bytes = 0;          ///< that it frees, adds or requests less; planned: that the device needs with it
  /// Whether memory would not have run out. nullopt: unknown, as later requests of the step are.
  std::optional<bool> enough;
  Confidence confidence = Confidence::estimated;
  std::string verified_by = {};                  ///< "PyTorch 2.11.0": replayed; "plan": planned; empty: not verified
  std::optional<std::uint64_t> until_step = {};  ///< of a leak, if it is not enough: about when memory runs out then
};

/// Enough ones first, then the smallest change first. `simulated_by`: as Explanation::simulated_by.
[[nodiscard]] std::vector<RestartChange> find_restart_changes(const OomFailure& failure,
                                                              const FailureEvidence& evidence,
                                                              const Recurrence& recurrence,
                                                              const std::string& simulated_by);
void sort_restart_changes(std::vector<RestartChange>& changes);

/// An argument of the next attempt's command.
struct ChangedArgument {
  std::string name;                ///< "batch", "accumulation" or "checkpointing"
  std::string option;              ///< as the user named it: "--batch-size"
  std::optional<std::string> was;  ///< nullopt: the command did not have it
  std::string value;               ///< empty: a flag
};

/// What a launcher can start next. Tidemark starts nothing itself.
struct NextAttempt {
  std::size_t change = 0;  ///< index into RestartVerdict::changes
  std::vector<ChangedArgument> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables to set, with their values
  std::vector<std::string> command;                              ///< the changed command
};

struct RestartVerdict {
  std::vector<RankRecord> ranks;     ///< by rank, those without one last
  std::optional<std::size_t> first;  ///< of these: the one that ran out of memory first
  std::optional<std::int32_t> world_size;
  std::vector<std::int32_t> missing_ranks;  ///< without a recording, at most kMaxMissingRanks
  std::uint64_t missing_count = 0;
  std::uint64_t older_recordings = 0;       ///< of the folder, of earlier attempts
  bool several_hosts = false;               ///< that ran out of memory: their clocks may differ
  std::optional<FailureEvidence> evidence;  ///< of the first one
  std::optional<Explanation> explanation;   ///< of the first one
  std::optional<HostKill> kill;             ///< of the first one, if it was killed
  Recurrence recurrence;
  std::vector<RestartChange> changes;
  std::optional<NextAttempt> next_attempt;
  std::string not_applied = {};  ///< why there is no next attempt although one was requested
};

inline constexpr std::size_t kMaxMissingRanks = 64;

/// Sorts the ranks, finds missing ones, and the first that ran out of memory or was killed: by the wall clock;
/// recordings without one come last.
void order_ranks(RestartVerdict& verdict);

}  // namespace tidemark
