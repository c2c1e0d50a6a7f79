// The recorder's side of one process: records in its threads' lanes become a recording in the order of time.
#include "collect/recorder/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "ring_process.h"
#include "temporary_folder.h"
#include "trace/segment_joiner.h"
#include "trace/window_writer.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Device kCuda0{DeviceType::cuda, 0};
constexpr Device kCuda1{DeviceType::cuda, 1};

/// Accepts bytes like a memory sink until it is told to fail.
class BreakingSink : public Sink {
 public:
  explicit BreakingSink(const bool* broken, int* refused) : broken_(broken), refused_(refused) {}
  Result<void> append(std::span<const std::byte> /*bytes*/) override {
    if (!*broken_) return {};
    ++*refused_;
    return Error{"run.tide: No space left on device"};
  }

 private:
  const bool* broken_;
  int* refused_;
};

class SessionTest : public ::testing::Test {
 protected:
  Session& start(std::uint64_t max_file_bytes = 0) { return start(write_to(&bytes), max_file_bytes); }
  Session& start(std::unique_ptr<TraceWriter> writer, std::uint64_t max_file_bytes = 0) {
    auto memory = SharedMemory::map(ScopedFd(process.duplicate()));
    EXPECT_TRUE(memory.ok());
    session = std::make_unique<Session>(std::move(*memory), clock, std::move(writer), ProcessInfo{},
                                        Session::Limits{max_file_bytes});
    return *session;
  }
  /// Addresses of the events of a recording, which identify them here.
  static std::vector<std::uint64_t> addresses(const std::vector<Event>& events) {
    std::vector<std::uint64_t> out;
    for (const Event& event : events) out.push_back(event.address);
    return out;
  }
  [[nodiscard]] bool told_to_stop() const { return process.shared()->control.stop.load() != 0; }

  TickClock clock{ring::Clock::monotonic};
  RingProcess process;
  Bytes bytes;
  std::unique_ptr<Session> session;
};

TEST_F(SessionTest, WritesAllRecordFields) {
  start();
  RingThread thread(process, 0, 4711);
  const Device odd{static_cast<DeviceType>(-3), -1};
  thread.allocate(100, 0x1000, 512, kCuda0, 512, 2 << 20);
  thread.allocate(200, 0x2000, 64);
  thread.allocate(250, 0x3000, 1, odd, 1, 1);
  thread.put(ring::RecordKind::out_of_memory, kCuda1, ring::kNoStack, {process.start_ticks() + 300, 0, 1 << 30, 7, 8});
  thread.put(ring::RecordKind::pause, {}, ring::kNoStack, {process.start_ticks() + 400});
  thread.put(ring::RecordKind::resume, {}, ring::kNoStack, {process.start_ticks() + 500});
  thread.put(ring::RecordKind::free, kCuda0, ring::kNoStack, {process.start_ticks() + 600, 0x1000, 0, 2 << 20});
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  std::vector<std::string> lines;
  for (const Event& event : recording.events) lines.push_back(describe(event));
  EXPECT_THAT(lines, ElementsAre("kind 0 t 100 thread 0 cuda:0 address 1000 size 512 slot 0 stack - totals 512 2097152",
                                 "kind 0 t 200 thread 0 cpu address 2000 size 64 slot 1 stack -",
                                 HasSubstr("address 3000 size 1 slot 2 stack - totals 1 1"),
                                 "kind 2 t 300 thread 0 cuda:1 address 0 size 1073741824 slot - stack - totals 7 8",
                                 "kind 3 t 400 thread 0 cpu address 0 size 0 slot - stack -",
                                 "kind 4 t 500 thread 0 cpu address 0 size 0 slot - stack -",
                                 "kind 1 t 600 thread 0 cuda:0 address 1000 size 512 slot 0 stack - totals 0 2097152"));
  EXPECT_EQ(recording.events[2].device, odd);
  ASSERT_EQ(recording.definitions.threads.size(), 1U);
  EXPECT_EQ(recording.definitions.threads[0].tid, 4711);
  EXPECT_TRUE(recording.definitions.losses.empty());
  ASSERT_TRUE(recording.definitions.end.has_value());
  EXPECT_TRUE(recording.definitions.end->process_exited);
  EXPECT_EQ(recording.definitions.end->time_ns, 600U);
  EXPECT_EQ(session->event_count(), 7U);
  EXPECT_FALSE(told_to_stop());
}

// Far more than one pass reads from a lane: one thread was much faster than the other.
TEST_F(SessionTest, FullRingsAreTakenInTheOrderOfTime) {
  start();
  RingThread fast(process, 0, 1);
  RingThread slow(process, 1, 2);
  std::uint64_t count = 0;
  while (count < 250'000 && fast.allocate(1000 + count, count, 1)) {
    if (++count % 5 != 0) continue;
    ASSERT_TRUE(slow.allocate(1000 + count - 1, (1U << 30U) + count, 1)) << "at the same time as the one before";
  }
  ASSERT_GT(count, 200'000U);
  ASSERT_TRUE(session->drain().ok());
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  EXPECT_EQ(recording.events.size(), count + count / 5);
  EXPECT_TRUE(std::is_sorted(recording.events.begin(), recording.events.end(),
                             [](const Event& left, const Event& right) { return left.time_ns < right.time_ns; }));
  EXPECT_TRUE(recording.definitions.losses.empty());
}

TEST_F(SessionTest, SegmentsOfAWindowJoinToTheRecording) {
  const TemporaryFolder folder;
  int opened = 0;
  auto writer = WindowWriter::create(
      [&](std::string& path) {
        path = folder.at(std::to_string(++opened));
        return open_file_sink(path, false);
      },
      {0, std::uint64_t{1} << 30}, {});
  ASSERT_TRUE(writer.ok());
  WindowWriter& window = **writer;
  auto memory = SharedMemory::map(ScopedFd(process.duplicate()));
  ASSERT_TRUE(memory.ok());
  session = std::make_unique<Session>(std::move(*memory), clock, std::move(*writer), ProcessInfo{},
                                      Session::Limits{0, &window});
  std::vector<std::unique_ptr<RingThread>> threads;
  for (std::uint32_t lane = 0; lane < 3; ++lane) threads.push_back(std::make_unique<RingThread>(process, lane, lane));
  std::vector<std::uint64_t> expected;
  for (std::uint64_t number = 1; number <= 3000; ++number) {
    threads[number % 3]->allocate(10 * number, number, 8);
    expected.push_back(number);
    if (number == 1500) threads[0]->put(ring::RecordKind::reset, {}, ring::kNoStack, {});
    if (number % 500 == 0) {
      process.shared()->lanes[0].dropped.store(number, std::memory_order_relaxed);
      ASSERT_TRUE(session->cut().ok());
    }
  }
  ASSERT_TRUE(session->finish(true).ok());
  EXPECT_EQ(window.complete().size(), 7U);
  Bytes joined_bytes;
  ASSERT_TRUE(join_segments(window.complete(), make_memory_sink(&joined_bytes)).ok());
  const Recording joined = read_all(joined_bytes);
  EXPECT_EQ(addresses(joined.events), expected);
  EXPECT_EQ(joined.definitions.threads.size(), 3U);
  EXPECT_EQ(joined.lost(QualityId::ring_full), 3000U);
  for (const Event& event : joined.events) {
    EXPECT_EQ(joined.definitions.threads[event.thread.value].tid, event.address % 3);
  }
}

TEST_F(SessionTest, MergesLanesInTheOrderOfTime) {
  start();
  constexpr std::uint32_t kLanes = 5;
  constexpr std::uint64_t kEvents = 20'000;
  std::vector<std::unique_ptr<RingThread>> threads;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    threads.push_back(std::make_unique<RingThread>(process, lane, 100 + lane));
  }
  // Runs of one lane, and events of all lanes close together; the thread is known by its tid.
  std::mt19937 random(3);
  std::vector<std::int64_t> expected_tids;
  std::uint32_t lane = 0;
  for (std::uint64_t number = 0; number < kEvents; ++number) {
    if (random() % 4 == 0) lane = static_cast<std::uint32_t>(random() % kLanes);
    threads[lane]->allocate(10 * number, number, 8);
    expected_tids.push_back(100 + lane);
    if (random() % 3000 == 0) {
      ASSERT_TRUE(session->drain().ok());
    }
  }
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  ASSERT_EQ(recording.events.size(), kEvents);
  for (std::uint64_t number = 0; number < kEvents; ++number) {
    const Event& event = recording.events[number];
    ASSERT_EQ(event.address, number);
    ASSERT_EQ(event.time_ns, 10 * number);
    ASSERT_EQ(recording.definitions.threads.at(event.thread.value).tid, expected_tids[number]);
  }
}

// The size and the device of a free are those of an allocation of another thread, which came before it.
TEST_F(SessionTest, WritesEffectsOfDriverCalls) {
  start();
  RingThread first(process, 0, 1);
  RingThread second(process, 1, 2);
  const auto call = [&](RingThread& thread, ring::DriverCall what, std::int8_t device,
                        std::initializer_list<std::uint64_t> fields) {
    thread.put(ring::RecordKind::driver, {static_cast<DeviceType>(what), device}, ring::kNoStack, fields);
  };
  const std::uint64_t now = process.start_ticks();
  call(second, ring::DriverCall::free, -1, {now + 300, 0x1000});
  call(second, ring::DriverCall::free, -1, {now + 400, 0x7777});
  call(first, ring::DriverCall::allocate, 1, {now + 200, 0x1000, 4096});
  call(first, static_cast<ring::DriverCall>(99), 1, {now + 500, 1, 2});
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  std::vector<std::string> lines;
  for (const Event& event : recording.events) lines.push_back(describe(event));
  EXPECT_THAT(lines, ElementsAre("kind 0 t 200 thread 0 cuda-driver:1 address 1000 size 4096 slot 0 stack -",
                                 "kind 1 t 300 thread 1 cuda-driver:1 address 1000 size 4096 slot 0 stack -"));
  ASSERT_EQ(recording.definitions.losses.size(), 2U);
  EXPECT_EQ(recording.definitions.losses[0].kind, QualityId::invalid_records);
  EXPECT_EQ(recording.definitions.losses[1].kind, QualityId::driver_frees);
  EXPECT_EQ(recording.definitions.losses[1].count, 1U);
}

// A thread in the middle of an event has taken a time that is not visible yet.
TEST_F(SessionTest, ABusyLaneHoldsLaterEventsBack) {
  start();
  RingThread slow(process, 0, 1);
  RingThread quick(process, 1, 2);
  slow.allocate(10, 10, 8);
  for (const std::uint64_t time : {5U, 20U, 30U}) quick.allocate(time, time, 8);
  slow.lane().busy.store(1);
  ASSERT_TRUE(session->drain().ok());
  EXPECT_EQ(session->event_count(), 2U);  // 5 and 10
  slow.allocate(25, 25, 8);
  slow.lane().busy.store(0);
  ASSERT_TRUE(session->drain().ok());
  EXPECT_EQ(session->event_count(), 5U);
  ASSERT_TRUE(session->finish(true).ok());
  EXPECT_THAT(addresses(read_all(bytes).events), ElementsAre(5, 10, 20, 25, 30));
}

TEST_F(SessionTest, ABusyLaneWithoutEventsHoldsEverythingBack) {
  start();
  RingThread quick(process, 0, 1);
  RingThread first_event(process, 1, 2);
  quick.allocate(5, 5, 8);
  first_event.lane().busy.store(1);
  ASSERT_TRUE(session->drain().ok());
  EXPECT_EQ(session->event_count(), 0U);
  ASSERT_TRUE(session->finish(true).ok());  // killed in the middle of it
  EXPECT_THAT(addresses(read_all(bytes).events), ElementsAre(5));
}

// Another thread may get the released memory before the call returns.
TEST_F(SessionTest, ReleasingCallDelaysLaterEvents) {
  start();
  RingThread freeing(process, 0, 1);
  RingThread quick(process, 1, 2);
  const auto driver = [&](RingThread& thread, ring::DriverCall call, std::initializer_list<std::uint64_t> fields) {
    thread.put(ring::RecordKind::driver, {static_cast<DeviceType>(call), 0}, ring::kNoStack, fields);
  };
  const auto now = [] { return ring::monotonic_ns(); };
  bool waited = false;
  std::uint64_t address = 0;
  for (int attempt = 0; attempt < 100 && !waited; ++attempt) {  // at most the time that this process may be descheduled
    driver(quick, ring::DriverCall::allocate, {now(), ++address, 8});
    const std::uint64_t made = now() + 1;
    freeing.lane().call_since.store(made);
    driver(quick, ring::DriverCall::allocate, {made + 1000, address, 16});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t before = session->event_count();
    ASSERT_TRUE(session->drain().ok());
    waited = now() < made + 100'000'000;
    if (waited) {
      EXPECT_EQ(session->event_count(), before + 1);
    }
    driver(freeing, ring::DriverCall::free, {made, address, 0});
    freeing.lane().call_since.store(0);
    ASSERT_TRUE(session->drain().ok());
  }
  EXPECT_TRUE(waited);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  std::vector<std::string> last;
  for (std::size_t index = recording.events.size() - 3; index < recording.events.size(); ++index) {
    const Event& event = recording.events[index];
    last.push_back(fmt::format("{} of thread {}, {} bytes", event.kind == EventKind::free ? "free" : "allocation",
                               event.thread.value, event.size));
  }
  EXPECT_THAT(last, ElementsAre("allocation of thread 1, 8 bytes", "free of thread 0, 8 bytes",
                                "allocation of thread 1, 16 bytes"));
}

// A call that waits for the GPU does not delay the others' events forever, and comes after events written meanwhile.
TEST_F(SessionTest, LongCallDoesNotDelayEvents) {
  start();
  RingThread freeing(process, 0, 1);
  RingThread quick(process, 1, 2);
  const std::uint64_t started = process.start_ticks();  // a second ago
  quick.put(ring::RecordKind::driver, {static_cast<DeviceType>(ring::DriverCall::allocate), 0}, ring::kNoStack,
            {started + 100, 7, 8});
  quick.allocate(200, 200, 8);
  freeing.lane().call_since.store(started + 150);
  ASSERT_TRUE(session->drain().ok());
  EXPECT_EQ(session->event_count(), 2U);
  freeing.put(ring::RecordKind::driver, {static_cast<DeviceType>(ring::DriverCall::free), -1}, ring::kNoStack,
              {started + 150, 7, 0});
  freeing.allocate(300, 300, 8);
  ASSERT_TRUE(session->finish(true).ok());
  std::vector<std::uint64_t> times;
  for (const Event& event : read_all(bytes).events) times.push_back(event.time_ns);
  EXPECT_THAT(times, ElementsAre(100, 200, 200, 300));
}

TEST_F(SessionTest, EventsOfTheLastMomentWait) {
  start();
  RingThread thread(process, 0, 1);
  const auto now = [this] { return ring::monotonic_ns() - process.start_ticks(); };
  bool waited = false;
  std::uint64_t written = 0;
  for (int attempt = 0; attempt < 100 && !waited; ++attempt) {  // this process may be descheduled until that moment has
                                                                // passed
    const std::uint64_t soon = now() + 30'000'000;
    thread.allocate(soon, ++written, 8);
    ASSERT_TRUE(session->drain().ok());
    waited = now() < soon;
    if (waited) {
      EXPECT_EQ(session->event_count(), written - 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    ASSERT_TRUE(session->drain().ok());
    EXPECT_EQ(session->event_count(), written);
  }
  EXPECT_TRUE(waited);
}

// The process ends with more than one pass in the ring, and its lane is marked busy: killed inside a hook.
TEST_F(SessionTest, FinishTakesEverything) {
  start();
  RingThread thread(process, 0, 1);
  std::uint64_t written = 0;
  while (thread.allocate(written, written, 8)) ++written;
  EXPECT_GT(written, 500'000U);
  thread.lane().busy.store(1);
  ASSERT_TRUE(session->finish(true).ok());
  EXPECT_EQ(session->event_count(), written);
  EXPECT_EQ(read_all(bytes).events.size(), written);
}

TEST_F(SessionTest, RunningProcessIsToldToStop) {
  start();
  RingThread thread(process, 0, 1);
  thread.allocate(10, 1, 8);
  ASSERT_TRUE(session->finish(false).ok());
  EXPECT_TRUE(told_to_stop());
  const Recording recording = read_all(bytes);
  EXPECT_EQ(recording.events.size(), 1U);
  ASSERT_TRUE(recording.definitions.end.has_value());
  EXPECT_FALSE(recording.definitions.end->process_exited);
}

TEST_F(SessionTest, ALaneIsUsedByOneThreadAfterTheOther) {
  start();
  RingThread first(process, 0, 11);
  first.allocate(10, 1, 8);
  first.lane().owner.store(0);
  ASSERT_TRUE(session->drain().ok());
  // The lane's state in the process is kept; the next owner only sends its name.
  process::DefinitionWriter definition(&first.writer, ring::DefinitionKind::thread);
  definition.u32(22);
  definition.text("next");
  ASSERT_TRUE(definition.finish());
  first.allocate(20, 2, 8);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  ASSERT_EQ(recording.events.size(), 2U);
  EXPECT_EQ(recording.definitions.threads.at(recording.events[0].thread.value).tid, 11);
  EXPECT_EQ(recording.definitions.threads.at(recording.events[1].thread.value).tid, 22);
}

// A thread came when the pool was empty, got no chunk, and left: its lane was claimed and never used.
TEST_F(SessionTest, UnusedLaneHidesNoOther) {
  start();
  RingThread first(process, 0, 1);
  RingThread third(process, 2, 3);
  first.allocate(10, 1, 8);
  third.allocate(20, 2, 8);
  process.shared()->lanes[1].dropped.store(3);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  EXPECT_THAT(addresses(recording.events), ElementsAre(1, 2));
  EXPECT_EQ(recording.lost(QualityId::ring_full), 3U);
}

TEST_F(SessionTest, DistinguishesLossesWhileRecorderWasStopped) {
  start();
  RingThread thread(process, 0, 1);
  thread.allocate(10, 1, 8);
  thread.lane().dropped.store(5);
  ASSERT_TRUE(session->drain().ok());
  thread.lane().dropped.store(105);
  ASSERT_TRUE(session->drain(true).ok());
  thread.lane().dropped.store(107);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  EXPECT_EQ(recording.lost(QualityId::ring_full), 7U);
  EXPECT_EQ(recording.lost(QualityId::recorder_stopped), 100U);
}

TEST_F(SessionTest, CountsLosses) {
  start();
  RingThread one(process, 0, 1);
  RingThread other(process, 1, 2);
  one.lane().dropped.store(5);
  other.lane().dropped.store(6);
  one.lane().reentrant.store(7);
  other.lane().truncated.store(8);
  process.shared()->control.thread_limit_drops.store(9);
  one.allocate(10, 1, 8);
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  EXPECT_EQ(recording.lost(QualityId::ring_full), 11U);
  EXPECT_EQ(recording.lost(QualityId::reentrant), 7U);
  EXPECT_EQ(recording.lost(QualityId::stack_truncated), 8U);
  EXPECT_EQ(recording.lost(QualityId::thread_limit), 9U);
  EXPECT_EQ(session->dropped_count(), 20U);
}

TEST_F(SessionTest, ReportsOverwrittenRingOnce) {
  start();
  RingThread thread(process, 0, 1);
  RingThread healthy(process, 1, 2);
  thread.allocate(10, 1, 8);
  thread.put(static_cast<ring::RecordKind>(99), {}, 0, {1, 2, 3});
  thread.put(ring::RecordKind::free, {}, 0, {process.start_ticks()});  // without an address
  thread.allocate(20, 2, 8);
  *thread.writer.reserve(1) = 0;  // a record without length
  thread.writer.commit(1);
  healthy.allocate(30, 3, 8);
  ASSERT_TRUE(session->drain().ok());
  ASSERT_TRUE(session->drain().ok());
  ASSERT_TRUE(session->finish(true).ok());
  const Recording recording = read_all(bytes);
  EXPECT_THAT(addresses(recording.events), ElementsAre(1, 2, 3));
  EXPECT_EQ(recording.lost(QualityId::invalid_records), 2U);
  EXPECT_EQ(recording.lost(QualityId::ring_corrupted), 1U);
}

// An overwritten time must not delay, and accumulate, all later events of the thread.
TEST_F(SessionTest, FutureTimeDoesNotDelayEvents) {
  start();
  RingThread thread(process, 0, 1);
  thread.put(ring::RecordKind::allocate, {}, ring::kNoStack, {~std::uint64_t{0}, 1, 8});
  for (std::uint64_t time = 10; time < 1000; time += 10) thread.allocate(time, time, 8);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(session->drain().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(session->drain().ok());
  EXPECT_EQ(session->event_count(), 100U);
  ASSERT_TRUE(session->finish(true).ok());
  EXPECT_EQ(read_all(bytes).lost(QualityId::invalid_times), 1U);
}

TEST_F(SessionTest, ReadsProcessFacts) {
  start();
  RingThread thread(process, 0, 1);
  process::DefinitionWriter definition(&thread.writer, ring::DefinitionKind::process);
  definition.u32(2);
  definition.u32(1);
  definition.u32(16);
  definition.text("3.11.7");
  definition.text("/nonexistent/libc10.so.1.13");
  definition.text("");
  ASSERT_TRUE(definition.finish());
  thread.allocate(10, 1, 8);
  ASSERT_TRUE(session->finish(true).ok());
  const ProcessInfo& info = read_all(bytes).definitions.process;
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.world_size, 16);
  EXPECT_EQ(info.python_version, "3.11.7");
  EXPECT_EQ(info.torch_version, "1.13");
  EXPECT_EQ(info.allocator_settings, "");
}

TEST_F(SessionTest, StopsAtTheSizeLimit) {
  constexpr std::uint64_t kLimit = 64 * 1024;
  start(kLimit);
  RingThread thread(process, 0, 1);
  std::mt19937_64 random(1);  // addresses and sizes that do not compress
  std::uint64_t time = 0;
  for (int pass = 0; pass < 4 && !session->stopped(); ++pass) {
    for (int count = 0; count < 20'000; ++count) thread.allocate(time++, random(), random() >> 20);
    ASSERT_TRUE(session->drain().ok());
  }
  EXPECT_TRUE(session->size_limit_reached());
  EXPECT_TRUE(told_to_stop());
  ASSERT_TRUE(session->finish(false).ok());
  EXPECT_LE(bytes.size(), kLimit);
  EXPECT_GT(bytes.size(), kLimit / 2);
  const Recording recording = read_all(bytes);
  EXPECT_EQ(recording.error, "");
  EXPECT_EQ(recording.events.size(), session->event_count());
  EXPECT_EQ(recording.lost(QualityId::size_limit), 1U);
  ASSERT_TRUE(recording.definitions.end.has_value());
  EXPECT_FALSE(recording.definitions.end->process_exited);
}

TEST_F(SessionTest, EventsBeyondTheSizeLimitAreLeftOut) {
  constexpr std::uint64_t kLimit = 64 * 1024;
  start(kLimit);
  RingThread thread(process, 0, 1);
  thread.allocate(10, 1, 8);
  std::mt19937 random(1);
  std::string name;  // does not compress to less than the limit
  for (int count = 0; count < 200'000; ++count) name += static_cast<char>('!' + random() % 90);
  process::DefinitionWriter definition(&thread.writer, ring::DefinitionKind::thread);
  definition.u32(2);
  definition.text(name.c_str());
  ASSERT_TRUE(definition.finish());
  thread.allocate(20, 2, 8);
  ASSERT_TRUE(session->finish(true).ok());
  EXPECT_TRUE(session->size_limit_reached());
  EXPECT_LE(bytes.size(), kLimit);
  const Recording recording = read_all(bytes);
  EXPECT_EQ(recording.error, "");
  EXPECT_EQ(recording.lost(QualityId::size_limit), 1U);
  ASSERT_TRUE(recording.definitions.end.has_value());
}

TEST_F(SessionTest, MemoryThatRunsOutEndsIt) {
  start();
  RingThread thread(process, 0, 1);
  thread.allocate(10, 1, 8);
  ASSERT_TRUE(session->drain().ok());
  EXPECT_EQ(session->out_of_memory().message, "out of memory");
  EXPECT_TRUE(session->stopped());
  EXPECT_TRUE(told_to_stop());
  EXPECT_TRUE(session->finish(true).ok());
}

TEST_F(SessionTest, ProcessIsToldToStopAtDestruction) {
  start();
  EXPECT_FALSE(told_to_stop());
  session = nullptr;
  EXPECT_TRUE(told_to_stop());
}

TEST_F(SessionTest, AWriteErrorEndsItAndTheProcessIsTold) {
  bool broken = false;
  int refused = 0;
  auto writer = TraceWriter::create(std::make_unique<BreakingSink>(&broken, &refused), ProcessInfo{});
  ASSERT_TRUE(writer.ok());
  start(std::move(*writer));
  RingThread thread(process, 0, 1);
  for (std::uint64_t time = 0; time < 40'000; ++time) thread.allocate(time, time, 8);
  broken = true;
  const auto failed = session->drain();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("No space left"));
  EXPECT_TRUE(session->stopped());
  EXPECT_TRUE(told_to_stop());
  EXPECT_EQ(refused, 1);
  thread.allocate(50'000, 1, 8);
  const auto again = session->drain();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 0U);
  EXPECT_TRUE(session->finish(true).ok()) << "the error has been reported";
  EXPECT_EQ(refused, 1);
}

TEST_F(SessionTest, AWriteErrorAtTheEndIsReported) {
  bool broken = false;
  int refused = 0;
  auto writer = TraceWriter::create(std::make_unique<BreakingSink>(&broken, &refused), ProcessInfo{});
  ASSERT_TRUE(writer.ok());
  start(std::move(*writer));
  RingThread thread(process, 0, 1);
  thread.allocate(10, 1, 8);
  broken = true;
  EXPECT_FALSE(session->finish(true).ok());
}

}  // namespace
}  // namespace tidemark::testing
