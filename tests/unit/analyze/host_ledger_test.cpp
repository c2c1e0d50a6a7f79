// The host's memory by owner: sums computed by hand.
#include "analyze/ledger/host_ledger.h"

#include <gtest/gtest.h>

namespace tidemark::testing {
namespace {

HostProcess host_process(std::int64_t pid, ProcessRole role, std::uint64_t anon,
                         std::optional<std::uint64_t> own = std::nullopt) {
  HostProcess made;
  made.pid = pid;
  made.role = role;
  made.recorded = role == ProcessRole::main;
  made.pages.anon_bytes = anon;
  made.pages.rss_bytes = anon + 5;
  made.private_bytes = own;
  return made;
}

HostPartsSample parts_sample(std::uint64_t time_ns, std::uint64_t used) {
  HostPartsSample made;
  made.time_ns = time_ns;
  made.cgroup = {used, 1000, 500, 100, 50, 40, 5, 7};
  made.machine = {9000, 20000, 4000, 3000, 1000, 500, {}, 0};
  return made;
}

std::optional<std::uint64_t> bytes_of(const HostBreakdown& ledger, HostPart part) {
  for (const HostLine& line : ledger.lines) {
    if (line.part == part) return line.bytes;
  }
  return std::nullopt;
}

HostBreakdown ledger_of(const HostPartsSample& of) {
  SharedAnon shared;
  shared.update(of);
  return make_host_ledger(of, shared);
}

TEST(HostLedger, AddsUp) {
  HostPartsSample of = parts_sample(3, 800);
  of.processes = {host_process(1, ProcessRole::main, 200), host_process(2, ProcessRole::data_worker, 250, 60)};
  const HostBreakdown ledger = ledger_of(of);
  EXPECT_EQ(ledger.scope, HostScope::cgroup);
  EXPECT_EQ(ledger.limit_bytes, 1000U);
  EXPECT_EQ(ledger.lines[0].bytes, 200U) << "all that the main process has";
  EXPECT_EQ(ledger.lines[1].bytes, 60U) << "what the worker does not share with it";
  EXPECT_EQ(bytes_of(ledger, HostPart::other_processes), 240U) << "500 - 200 - 60";
  EXPECT_EQ(bytes_of(ledger, HostPart::shared_memory), 50U);
  EXPECT_EQ(bytes_of(ledger, HostPart::page_cache), 100U);
  EXPECT_EQ(bytes_of(ledger, HostPart::kernel), 40U);
  EXPECT_EQ(bytes_of(ledger, HostPart::sockets), 5U);
  EXPECT_EQ(ledger.unexplained_bytes, 800 - (500 + 50 + 100 + 40 + 5));
  EXPECT_EQ(ledger.swap_bytes, 7U);
  EXPECT_TRUE(ledger.caveats.empty());
}

TEST(HostLedger, OfTheMachineWithoutALimit) {
  HostPartsSample of = parts_sample(3, 800);
  of.cgroup.limit_bytes.reset();
  EXPECT_EQ(ledger_of(of).scope, HostScope::machine);
  EXPECT_EQ(ledger_of(of).used_bytes, 9000U);
  of.cgroup.limit_bytes = 30000;
  EXPECT_EQ(ledger_of(of).scope, HostScope::machine) << "a limit above all that there is";
}

TEST(HostLedger, SharedMemoryOfAWorkerIsKeptFromItsLastReading) {
  HostPartsSample of = parts_sample(3, 800);
  of.processes = {host_process(2, ProcessRole::data_worker, 200, 50)};
  SharedAnon shared;
  shared.update(of);
  of.processes = {host_process(2, ProcessRole::data_worker, 400), host_process(3, ProcessRole::data_worker, 30)};
  shared.update(of);
  const HostBreakdown ledger = make_host_ledger(of, shared);
  EXPECT_EQ(ledger.lines[0].bytes, 250U) << "it shared 150, and what it gets later is its own";
  EXPECT_EQ(ledger.lines[1].bytes, 30U) << "not known: all";
  EXPECT_EQ(ledger.caveats, (std::vector{HostCaveat::estimated_pages, HostCaveat::shared_pages}));
  of.processes.clear();
  shared.update(of);
  EXPECT_EQ(shared.of(2), std::nullopt);
}

TEST(HostLedger, OfManyProcessesTheSmallOnesAreOneLine) {
  HostPartsSample of = parts_sample(3, 800);
  for (int n = 0; n < 12; ++n) of.processes.push_back(host_process(n + 1, ProcessRole::rank, 10));
  of.other_processes = 3;
  of.other_pages.anon_bytes = 6;
  const HostBreakdown ledger = ledger_of(of);
  EXPECT_EQ(bytes_of(ledger, HostPart::job_processes), 26U);
  EXPECT_EQ(ledger.lines[10].count, 5U);
}

TEST(HostLedger, ValuesMissingFromTheKernelAreUnknown) {
  HostPartsSample of;
  of.cgroup.used_bytes = 10;
  of.cgroup.limit_bytes = 20;
  of.processes.emplace_back().pid = 1;
  const HostBreakdown ledger = ledger_of(of);
  EXPECT_EQ(ledger.lines[0].bytes, std::nullopt);
  EXPECT_EQ(bytes_of(ledger, HostPart::other_processes), std::nullopt);
  EXPECT_EQ(ledger.unexplained_bytes, 10);
  EXPECT_EQ(ledger.caveats, (std::vector{HostCaveat::anon_unknown, HostCaveat::parts_unknown}));
}

TEST(HostLedger, HostileSizesStayInRange) {
  HostPartsSample of = parts_sample(3, ~std::uint64_t{0} - 1);
  of.processes = {host_process(1, ProcessRole::main, ~std::uint64_t{0} - 1),
                  host_process(2, ProcessRole::data_worker, ~std::uint64_t{0} - 1)};
  of.cgroup.shmem_bytes = ~std::uint64_t{0} - 1;
  EXPECT_LE(ledger_of(of).unexplained_bytes, 0);
}

TEST(HostLedgerCollector, PeakLastAndWhoWasKilled) {
  HostLedgerCollector collector({std::uint64_t{25}, 10});
  const auto add = [&](std::uint64_t time_ns, std::uint64_t used, bool there) {
    HostPartsSample of = parts_sample(time_ns, used);
    if (there)
      of.processes = {host_process(1, ProcessRole::main, 100), host_process(2, ProcessRole::data_worker, 30, 20)};
    collector.add(of);
  };
  add(0, 300, true);
  add(8, 400, true);
  add(12, 950, true);
  KilledProcess killed;
  killed.time_ns = 14;
  collector.add(killed);
  add(22, 600, true);
  add(31, 200, false);
  const HostLedgers ledgers = std::move(collector).finish(Overview());
  EXPECT_EQ(ledgers.peak->time_ns, 12U);
  EXPECT_EQ(ledgers.last->time_ns, 22U) << "the process was gone then";
  EXPECT_EQ(ledgers.at->time_ns, 22U);
  ASSERT_EQ(ledgers.kills.size(), 1U);
  EXPECT_EQ(ledgers.kills[0].before->time_ns, 12U);
  ASSERT_EQ(ledgers.points.size(), 4U);
  EXPECT_EQ(ledgers.points[0].time_ns, 8U) << "the highest of its stretch";
  EXPECT_EQ(ledgers.points[1].main_bytes, 100U);
  EXPECT_EQ(ledgers.points[1].workers_bytes, 20U);
  EXPECT_EQ(ledgers.points[1].other_bytes, 380U);
  EXPECT_EQ(ledgers.points[1].kernel_bytes, 45U) << "with sockets";
  EXPECT_EQ(ledgers.points[3].main_bytes, std::nullopt);
}

}  // namespace
}  // namespace tidemark::testing
