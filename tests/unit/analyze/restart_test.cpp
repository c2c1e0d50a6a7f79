// The rules of the verdict on a restart, from evidence written by hand and from stores built event by event; the
// comments compute the expected steps.
#include "analyze/restart/restart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/units.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {
namespace {

FailureEvidence in_step(std::uint64_t step, std::vector<double> peaks) {
  FailureEvidence evidence;
  evidence.steps_known = true;
  evidence.steps_exact = true;
  evidence.ran_forward = true;
  evidence.trained = true;
  evidence.failed_step = step;
  evidence.step_peaks = std::move(peaks);
  return evidence;
}

TEST(Restart, LeakRecursWithinTheIntervalOfItsRate) {
  FailureEvidence evidence = in_step(41, std::vector<double>(40, 100));
  evidence.cause = OomCause::leak;
  evidence.cause_is_certain = true;
  evidence.leaked_bytes = 400;
  evidence.leak_bytes_per_step = {10, 8, 12.5};
  evidence.leak_first_step = 1;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::yes);
  EXPECT_EQ(answer.reason, RestartReason::leak);
  EXPECT_EQ(answer.confidence, Confidence::exact);
  EXPECT_EQ(answer.at_step, 41U);
  // The same 400 bytes from step 1 on: at 12.5 a step 32 steps, at 8 a step 50; and one step more on either side.
  EXPECT_EQ(answer.earliest_step, 1U + 32 - 1);
  EXPECT_EQ(answer.latest_step, 1U + 50 + 1);
}

TEST(Restart, ALeakWithoutAnIntervalHasNoBounds) {
  FailureEvidence evidence = in_step(10, std::vector<double>(9, 100));
  evidence.cause = OomCause::leak;
  evidence.leaked_bytes = 50;
  evidence.leak_bytes_per_step = {5, 0, std::numeric_limits<double>::infinity()};
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.confidence, Confidence::estimated) << "the cause is not certain";
  EXPECT_EQ(answer.at_step, 10U);
  EXPECT_EQ(answer.earliest_step, std::nullopt);
  EXPECT_EQ(answer.latest_step, std::nullopt);
}

TEST(Restart, ALeakInTheLastPartOfARecordingHasNoStep) {
  FailureEvidence evidence = in_step(41, std::vector<double>(40, 100));
  evidence.from_start = false;
  evidence.cause = OomCause::leak;
  evidence.leaked_bytes = 400;
  evidence.leak_bytes_per_step = {10, 9, 11};
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::yes);
  EXPECT_EQ(answer.at_step, std::nullopt);
}

TEST(Restart, TheFirstStepsAreMadeByEveryStart) {
  for (const std::uint64_t step : {1U, 2U}) {
    const Recurrence answer = decide_recurrence(in_step(step, std::vector<double>(step - 1, 100)));
    EXPECT_EQ(answer.will_recur, WillRecur::yes);
    EXPECT_EQ(answer.reason, RestartReason::first_steps);
    EXPECT_EQ(answer.at_step, step);
    EXPECT_EQ(answer.earliest_step, step);
  }
}

TEST(Restart, WhatComesBeforeTheFirstForwardPassIsMadeByEveryStart) {
  FailureEvidence evidence;
  evidence.keeps_most = true;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::yes);
  EXPECT_EQ(answer.reason, RestartReason::setup);
  EXPECT_EQ(answer.at_step, std::nullopt);
  evidence.keeps_most = false;  // it allocated and freed much: loading does not
  EXPECT_EQ(decide_recurrence(evidence).will_recur, WillRecur::unknown);
}

TEST(Restart, ALongerInputDependsOnTheOrderOfTheData) {
  FailureEvidence evidence = in_step(8, {100, 140, 90, 120, 100, 130, 95});
  evidence.need_bytes = 300;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::unknown);
  EXPECT_EQ(answer.reason, RestartReason::larger_step);
  EXPECT_EQ(answer.at_step, 8U) << "with the same data in the same order";
}

TEST(Restart, ACallSiteThatNoStepReachedIsAnotherPhase) {
  FailureEvidence evidence = in_step(8, {100, 140, 90, 120, 100, 130, 95});
  evidence.need_bytes = 300;
  evidence.new_call_site = true;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::yes);
  EXPECT_EQ(answer.reason, RestartReason::other_phase);
  EXPECT_EQ(answer.confidence, Confidence::estimated);
  EXPECT_EQ(answer.at_step, 8U);
}

TEST(Restart, StepsThatNeedMoreAndMoreRecur) {
  std::vector<double> peaks;
  for (int step = 0; step < 20; ++step) peaks.push_back(100 + 10 * step);
  FailureEvidence evidence = in_step(21, peaks);
  evidence.need_bytes = 300;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::yes);
  EXPECT_EQ(answer.reason, RestartReason::growing_steps);
  EXPECT_EQ(answer.at_step, 21U);
}

TEST(Restart, EarlierStepsThatNeededAsMuchPointToOtherMemory) {
  FailureEvidence evidence = in_step(5, {100, 100, 120, 100});
  evidence.need_bytes = 110;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::unknown);
  EXPECT_EQ(answer.reason, RestartReason::memory_of_others);
  EXPECT_EQ(answer.at_step, std::nullopt);
}

TEST(Restart, TheMainCauseDecides) {
  FailureEvidence evidence = in_step(9, std::vector<double>(8, 100));
  evidence.need_bytes = 300;
  evidence.cause = OomCause::other_process;
  evidence.cause_is_certain = true;
  EXPECT_EQ(decide_recurrence(evidence).reason, RestartReason::memory_of_others);
  EXPECT_EQ(decide_recurrence(evidence).will_recur, WillRecur::unknown);
  evidence.cause = OomCause::fragmentation;
  evidence.steps_exact = false;
  const Recurrence answer = decide_recurrence(evidence);
  EXPECT_EQ(answer.will_recur, WillRecur::yes);
  EXPECT_EQ(answer.reason, RestartReason::fragmentation);
  EXPECT_EQ(answer.confidence, Confidence::estimated);
  EXPECT_EQ(answer.earliest_step, 8U);
  EXPECT_EQ(answer.latest_step, 10U);
}

TEST(Restart, AProgramThatGoesOnSurvives) {
  FailureEvidence evidence = in_step(9, std::vector<double>(8, 100));
  evidence.steps_after = 3;
  EXPECT_EQ(decide_recurrence(evidence).will_recur, WillRecur::no);
  EXPECT_EQ(decide_recurrence(evidence).reason, RestartReason::survived);
}

TEST(Restart, TheLastPartOfARecordingAloneDecidesNothing) {
  FailureEvidence evidence = in_step(1, {});
  evidence.from_start = false;
  EXPECT_EQ(decide_recurrence(evidence).will_recur, WillRecur::unknown);
  EXPECT_EQ(decide_recurrence(evidence).reason, RestartReason::not_recorded);
}

// Steps of one block each; the last one asks for more than the device has.
TEST(Restart, StepsAndPeaksOfAStore) {
  Scenario scenario;
  const StackId weights = scenario.stack({scenario.python("load", "train.py", 1)});
  const StackId forward = scenario.stack({scenario.python("forward", "train.py", 2)});
  scenario.allocate(10, "weights", 1000, kGpu, weights);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    scenario.mark(Mark::Kind::point, step * 100, "Tidemark.step#" + std::to_string(step));
    if (step == 5) break;
    scenario.allocate(step * 100 + 10, "activation" + std::to_string(step), 100 * step, kGpu, forward);
    scenario.free(step * 100 + 20, "activation" + std::to_string(step));
  }
  scenario.out_of_memory(510, 700, kGpu, forward);
  const Store store = scenario.store();
  OomFailure failure;
  failure.device = kGpu;
  failure.last_ns = 510;
  const FailureEvidence evidence = examine_failure(store, attribute_blocks(store), failure);
  EXPECT_TRUE(evidence.steps_known);
  EXPECT_TRUE(evidence.steps_exact);
  EXPECT_EQ(evidence.failed_step, 5U);
  EXPECT_EQ(evidence.steps_after, 0U);
  EXPECT_EQ(evidence.step_peaks, (std::vector<double>{1100, 1200, 1300, 1400}));
  EXPECT_EQ(evidence.need_bytes, 1700U);
  EXPECT_FALSE(evidence.keeps_most) << "4 of 5 blocks are freed";
  EXPECT_FALSE(evidence.new_call_site) << "each step allocated there";
}

RankRecord rank(std::int32_t number, std::uint64_t start, std::optional<std::uint64_t> failed, std::int64_t pid) {
  RankRecord record;
  record.recording.path = "rank" + std::to_string(number) + "-" + std::to_string(pid) + ".tide";
  record.recording.process.rank = number;
  record.recording.process.world_size = 4;
  record.recording.process.pid = pid;
  record.recording.process.parent_pid = 1;
  record.recording.process.hostname = number < 2 ? "a" : "b";
  record.recording.process.start_wall_ns = start;
  record.failed_ns = failed;
  if (failed) record.end = RankEnd::out_of_memory;
  return record;
}

TEST(Restart, TheFirstRankIsTheEarliestByTheWallClock) {
  RestartVerdict verdict;
  verdict.ranks = {rank(3, 1000, 500, 13), rank(1, 1200, 200, 11), rank(0, 1000, {}, 10)};  // 1500, 1400, none
  order_ranks(verdict);
  ASSERT_TRUE(verdict.first.has_value());
  EXPECT_EQ(verdict.ranks[*verdict.first].recording.process.rank, 1);
  EXPECT_EQ(verdict.ranks.front().recording.process.rank, 0);
  EXPECT_TRUE(verdict.several_hosts);
  EXPECT_EQ(verdict.missing_ranks, std::vector<std::int32_t>{2});
  EXPECT_EQ(verdict.missing_count, 1U);
  verdict.ranks[1].end = RankEnd::survived;
  order_ranks(verdict);
  EXPECT_EQ(verdict.ranks[*verdict.first].recording.process.rank, 3);
}

TEST(Restart, AKilledProcessIsFoundInTheRecordingsOfOthers) {
  Scenario scenario;
  HostKill kill;
  kill.killed.process.pid = 11;
  kill.killed.time_ns = 700;
  const Overview overview = scenario.overview();
  RestartVerdict verdict;
  for (const std::int32_t number : {0, 1}) {
    verdict.ranks.push_back(rank_record(overview, rank(number, 1000, {}, 10 + number).recording, {kill}));
  }
  order_ranks(verdict);
  ASSERT_TRUE(verdict.first.has_value());
  EXPECT_EQ(verdict.ranks[*verdict.first].recording.process.pid, 11);
  EXPECT_EQ(verdict.ranks[0].end, RankEnd::no_failure) << "the other recording has it too";
  verdict.ranks.pop_back();
  verdict.ranks[0] = rank_record(overview, rank(0, 1000, {}, 10).recording, {kill});
  order_ranks(verdict);
  EXPECT_EQ(verdict.ranks[0].end, RankEnd::killed) << "a process that is not recorded, such as a worker";
  EXPECT_EQ(verdict.ranks[0].killed_pid, 11);
}

TEST(Restart, ADamagedWorldSizeListsFewMissingRanks) {
  RestartVerdict verdict;
  verdict.ranks = {rank(1, 1000, 500, 13), rank(2'000'000, 1000, {}, 14)};
  verdict.ranks[0].recording.process.world_size = std::numeric_limits<std::int32_t>::max();
  order_ranks(verdict);
  EXPECT_EQ(verdict.missing_ranks.size(), kMaxMissingRanks);
  EXPECT_EQ(verdict.missing_count, static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) - 2);
}

TEST(Restart, AFolderHasTheNewestAttemptOfEachRank) {
  std::vector<RankRecord> records = {rank(0, 100, 5, 10), rank(1, 101, {}, 11), rank(0, 200, {}, 20),
                                     rank(1, 201, 7, 21), rank(1, 202, {}, 22)};
  records[4].recording.is_worker = true;  // of process 21
  records[4].recording.process.parent_pid = 21;
  const std::vector<RankRecord> newest = newest_attempt(records);
  ASSERT_EQ(newest.size(), 3U);
  EXPECT_EQ(newest[0].recording.process.pid, 20);
  EXPECT_EQ(newest[1].recording.process.pid, 21);
  EXPECT_EQ(newest[2].recording.process.pid, 22);
}

OomFailure failed_request(std::uint64_t missing) {
  OomFailure failure;
  failure.request.bytes = failure.request.segment = failure.request.driver = missing;
  failure.missing = missing;
  return failure;
}

TEST(Restart, TheSmallestChangeComesFirst) {
  OomFailure failure = failed_request(100);
  OomFix limit;
  limit.kind = OomFixKind::raise_limit;
  limit.bytes = 100;
  OomFix settings;
  settings.kind = OomFixKind::settings;
  settings.bytes = 100;
  settings.settings = "expandable_segments:True";
  failure.fixes = {limit, settings};
  FailureEvidence evidence = in_step(5, {100, 100, 100, 100});
  evidence.of_batch_bytes = 150;
  Recurrence recurrence;
  recurrence.reason = RestartReason::fragmentation;
  const auto changes = find_restart_changes(failure, evidence, recurrence, "PyTorch 2.11.0");
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].kind, RestartChangeKind::allocator_settings);
  EXPECT_EQ(changes[0].verified_by, "PyTorch 2.11.0");
  EXPECT_EQ(changes[0].enough, true) << "the steps before were complete";
  EXPECT_EQ(changes[1].kind, RestartChangeKind::batch);
  EXPECT_EQ(changes[1].divisor, 4U) << "a half frees 75 of the missing 100, a quarter 113";
  EXPECT_EQ(changes[1].bytes, 113U);
  EXPECT_EQ(changes[2].kind, RestartChangeKind::limit);
}

TEST(Restart, WhatDoesNotStopALeakPostponesIt) {
  OomFailure failure = failed_request(100);
  OomFix stop;
  stop.kind = OomFixKind::stop_leak;
  stop.bytes = 1000;
  OomFix limit;
  limit.kind = OomFixKind::raise_limit;
  limit.bytes = 100;
  failure.fixes = {limit, stop};
  FailureEvidence evidence = in_step(41, std::vector<double>(40, 100));
  evidence.leak_bytes_per_step = {25, 25, 25};
  evidence.of_batch_bytes = 1000;
  Recurrence recurrence;
  recurrence.reason = RestartReason::leak;
  recurrence.at_step = 41;
  const auto changes = find_restart_changes(failure, evidence, recurrence, "");
  ASSERT_EQ(changes.size(), 2U) << "a smaller batch leaks too";
  EXPECT_EQ(changes[0].fix->kind, OomFixKind::stop_leak);
  EXPECT_EQ(changes[0].enough, true);
  EXPECT_EQ(changes[1].enough, false);
  EXPECT_EQ(changes[1].until_step, 45U) << "100 bytes at 25 a step";
}

TEST(Restart, AFirstStepPromisesNothing) {
  OomFailure failure = failed_request(100);
  FailureEvidence evidence = in_step(1, {});
  evidence.of_batch_bytes = 400;
  Recurrence recurrence;
  recurrence.reason = RestartReason::first_steps;
  const auto changes = find_restart_changes(failure, evidence, recurrence, "");
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].divisor, 2U);
  EXPECT_EQ(changes[0].enough, std::nullopt) << "later requests of the step are unknown";
}

}  // namespace
}  // namespace tidemark::testing
