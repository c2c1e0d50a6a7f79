// The lines below a program's traceback, for dumps made by hand, ten at most.
#include "report/explain/verdict.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "cli/record_program.h"
#include "temporary_folder.h"
#include "trace/writer.h"

namespace tidemark::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr Device kGpu{DeviceType::cuda, 0};

class Verdict : public ::testing::Test {
 protected:
  /// A recording of process `pid`: a model of 3 GiB, `activations` blocks of 256 MiB, each of a separate line, and on
  /// the CPU 1 MiB. Then, if `requested` is not 0, a request that fails.
  DumpedFile write(const std::string& name, std::int64_t pid, std::uint32_t activations = 0,
                   std::uint64_t requested = 0, const std::vector<KilledProcess>& killed = {}) {
    auto sink = open_file_sink(folder_.at(name), false);
    EXPECT_TRUE(sink);
    ProcessInfo process;
    process.pid = pid;
    process.command_line = "python train.py";
    auto made = TraceWriter::create(std::move(*sink), process);
    EXPECT_TRUE(made);
    TraceWriter& writer = **made;
    const StringId file = writer.string("train.py");
    const auto line = [&](const char* function, std::uint32_t number) {
      Location location;
      location.file = file;
      location.function = writer.string(function);
      location.line = number;
      return writer.stack({}, writer.location(location));
    };
    Event event;
    event.address = 0x1000;
    event.device = {DeviceType::cpu, -1};
    event.size = kMiB;
    event.stack = line("load", 12);
    static_cast<void>(writer.event(event));
    event.device = kGpu;
    event.has_totals = true;
    const auto allocate = [&](std::uint64_t size, StackId stack) {
      event.time_ns += 1'000'000;
      event.address += 1 << 30;
      event.size = size;
      event.stack = stack;
      event.total_allocated += size;
      event.total_reserved += size;
      static_cast<void>(writer.event(event));
    };
    allocate(3 * kGiB, line("build", 20));
    for (std::uint32_t n = 0; n < activations; ++n) allocate(256 * kMiB, line("forward", 100 + n));
    if (requested != 0) {
      event.kind = EventKind::out_of_memory;
      event.address = 0;
      event.size = requested;
      event.stack = line("step", 40);
      static_cast<void>(writer.event(event));
    }
    for (const KilledProcess& victim : killed) writer.sample(victim);
    EXPECT_TRUE(writer.finish({event.time_ns + 1000, true}));
    DumpedFile dumped{folder_.at(name), pid, activations + 2U, requested == 0 ? 0U : 1U, 2048, 5'000'000'000};
    return dumped;
  }

  static KilledProcess killed(std::int64_t pid, const char* name) {
    KilledProcess killed;
    killed.process.pid = pid;
    killed.process.role = ProcessRole::main;
    killed.process.name = name;
    killed.process.pages = {600 * kMiB, 500 * kMiB, 60 * kMiB, 40 * kMiB, {}, {}, {}};
    killed.evidence = KillEvidence::exit_signal;
    killed.scope = KillScope::cgroup;
    killed.cgroup_usage_bytes = 690 * kMiB;
    killed.cgroup_limit_bytes = 700 * kMiB;
    return killed;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Verdict, DeviceOutOfMemory) {
  Dump dump;
  dump.reason = DumpReason::device_oom;
  dump.files = {write("run.tide", 10, 4, 2 * kGiB)};
  const auto lines = verdict_of(dump);
  EXPECT_LE(lines.size(), 10U);
  ASSERT_GE(lines.size(), 5U);
  EXPECT_THAT(lines[0], AllOf(StartsWith("Out of memory on cuda:0: 2.0 GiB requested"),
                              HasSubstr("More: `tidemark explain " + folder_.at("run.tide") + "`")));
  EXPECT_EQ(lines[1], "  requested by step (train.py:40)");
  EXPECT_THAT(lines[2], StartsWith("  4.0 GiB allocated"));  // 3 GiB + 4 × 256 MiB
  EXPECT_THAT(lines, Contains("     3.0 GiB  75.0%  build (train.py:20)"));
  EXPECT_EQ(lines.back(), folder_.at("run.tide") + ": the last 5.000 s of process 10, 6 events, 2.0 KiB");
}

// For the host, free memory and missing bytes are unknown: each line marks a possible leak as such.
TEST_F(Verdict, CpuOutOfMemory) {
  Explanation explanation;
  explanation.recording.path = "run.tide";
  OomFailure& failure = explanation.failures.emplace_back();
  failure.caching = false;
  failure.request.bytes = 16 * kMiB;
  failure.allocated = 3 * kGiB;
  EXPECT_EQ(device_oom_lines(explanation, {})[0],
            "Out of memory on cpu: 16.0 MiB requested, 3.0 GiB allocated; cause unknown. More: `tidemark explain "
            "run.tide`");
  EXPECT_EQ(device_oom_lines(explanation, {})[2], "  3.0 GiB allocated");
  failure.findings.push_back({OomCause::leak, 2 * kGiB, false});
  failure.step_count = 136;
  failure.leaks.emplace_back();
  const auto lines = device_oom_lines(explanation, 4 * kGiB);
  EXPECT_EQ(lines[0],
            "Out of memory on cpu: 16.0 MiB requested, 3.0 GiB allocated; 2.0 GiB may have leaked. More: `tidemark "
            "explain run.tide`");
  EXPECT_EQ(lines[2], "  3.0 GiB allocated; the process's address space is limited to 4.0 GiB (ulimit -v)");
  EXPECT_THAT(lines[3], StartsWith("  possible cause: 2.0 GiB leaked (if the pattern repeated 136 times is a training "
                                   "step); leaking call site: "));
}

TEST_F(Verdict, OfTheProcessWhoseRequestFailed) {
  Dump dump;
  dump.reason = DumpReason::device_oom;
  dump.files = {write("run.rank0.tide", 10), write("run.rank1.tide", 11, 1, kGiB)};
  const auto lines = verdict_of(dump);
  EXPECT_THAT(lines[0], HasSubstr("tidemark explain " + folder_.at("run.rank1.tide")));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("run.rank0.tide: the last "));
  EXPECT_THAT(lines.back(), HasSubstr("run.rank1.tide: the last "));
}

TEST_F(Verdict, TenLinesForManyProcessesAndErrors) {
  Dump dump;
  dump.reason = DumpReason::device_oom;
  for (int rank = 0; rank < 20; ++rank) dump.files.push_back(write(fmt::format("r{}.tide", rank), rank, 9, 2 * kGiB));
  dump.errors = {"no space left", "no space left"};
  dump.left_in = "/data/run.tide.kept";
  const auto lines = verdict_of(dump);
  EXPECT_LE(lines.size(), 10U);
  EXPECT_THAT(lines[0], StartsWith("Out of memory on cuda:0"));
  EXPECT_EQ(lines[lines.size() - 2], "  and 19 more recordings");
  EXPECT_EQ(lines.back(), "no dump: no space left; what was kept is in /data/run.tide.kept");
}

TEST_F(Verdict, TooLongToBeReadAtOnce) {
  Dump dump;
  dump.reason = DumpReason::device_oom;
  dump.files = {write("run.tide", 10, 1, kGiB)};
  dump.files.front().event_count = 15'000'001;
  const auto lines = verdict_of(dump);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], "Out of memory on a device. More: `tidemark explain " + folder_.at("run.tide") + "`");
}

TEST_F(Verdict, HostOutOfMemory) {
  KilledProcess victim = killed(10, "python train.py");
  victim.time_ns = 2'000'000;
  victim.process.recorded = true;
  Dump dump;
  dump.reason = DumpReason::host_oom;
  dump.killed = {killed(10, "python train.py")};
  dump.cgroup = "/sys/fs/cgroup/job";
  dump.files = {write("run.pid9.tide", 9), write("run.tide", 10, 0, 0, {victim})};
  const auto lines = verdict_of(dump);
  EXPECT_LE(lines.size(), 10U);
  ASSERT_GE(lines.size(), 6U);
  EXPECT_EQ(lines[0],
            "Out of memory on the host: main process python train.py (pid 10, recorded) killed by the kernel's OOM "
            "killer, its control group had reached its limit of 700.0 MiB");
  EXPECT_EQ(lines[1], "  control group /sys/fs/cgroup/job: limit 700.0 MiB, 690.0 MiB in use shortly before");
  EXPECT_EQ(lines[2],
            "  It held 600.0 MiB resident: 500.0 MiB anonymous, 60.0 MiB of files, 40.0 MiB of shared memory");
  EXPECT_THAT(lines, Contains("  1.0 MiB in recorded CPU tensors at the end, most of it by"));
  EXPECT_THAT(lines, Contains(HasSubstr("load (train.py:12)")));
}

TEST_F(Verdict, TenLinesForManyVictims) {
  Dump dump;
  dump.reason = DumpReason::host_oom;
  for (int pid = 10; pid < 15; ++pid) {
    dump.killed.push_back(killed(pid, "python worker.py"));
    dump.files.push_back(write(fmt::format("run.pid{}.tide", pid), pid));
  }
  const auto lines = verdict_of(dump);
  EXPECT_LE(lines.size(), 10U);
  EXPECT_THAT(lines[0], HasSubstr("(pid 10)"));
  EXPECT_THAT(lines[1], AllOf(StartsWith("  and main process"), HasSubstr("(pid 11)"), HasSubstr(", and 3 more")));
}

TEST_F(Verdict, KillsOfUnknownProcesses) {
  Dump dump;
  dump.reason = DumpReason::host_oom;
  dump.unexplained_kills = 2;
  dump.cgroup = "/sys/fs/cgroup/job";
  dump.files = {write("run.tide", 10)};
  EXPECT_EQ(verdict_of(dump)[0],
            "Out of memory on the host: the kernel killed 2 processes of the control group /sys/fs/cgroup/job, none "
            "that is known to be the program's");
}

TEST_F(Verdict, AskedForAndFailed) {
  Dump dump;
  dump.reason = DumpReason::signal;
  dump.files = {write("run.tide", 10, 4)};
  EXPECT_EQ(verdict_of(dump)[0], "Dumped on SIGUSR1");
  EXPECT_EQ(verdict_of(dump)[1], "  cpu: peak allocated 1.0 MiB, at the end 1.0 MiB");
  EXPECT_EQ(verdict_of(dump)[2], "  cuda:0: peak allocated 4.0 GiB, at the end 4.0 GiB");
  dump.reason = DumpReason::exit_code;
  EXPECT_EQ(verdict_of(dump)[0], "The program failed; no out-of-memory error recorded");
}

TEST_F(Verdict, NothingCouldBeWritten) {
  Dump dump;
  dump.reason = DumpReason::host_oom;
  dump.killed = {killed(10, "python train.py")};
  dump.errors = {"disk full"};
  dump.left_in = "/data/run.tide.kept";
  const auto lines = verdict_of(dump);
  EXPECT_THAT(lines[0], StartsWith("Out of memory on the host: main process python train.py (pid 10) killed"));
  EXPECT_EQ(lines.back(), "no dump: disk full; what was kept is in /data/run.tide.kept");
}

}  // namespace
}  // namespace tidemark::cli
