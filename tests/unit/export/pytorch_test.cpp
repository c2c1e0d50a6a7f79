// Reads snapshots back with tidemark's own reader, which shares no code with the writer; pytorch_viewer.py reads them
// with Python's pickle and PyTorch's viewer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "import/open.h"
#include "import/pytorch_snapshot/read_snapshot.h"
#include "unit/export/export_support.h"
#include "unit/import/recorded_snapshots.h"

namespace tidemark {
namespace {

using pytorch::Action;
using pytorch::BlockState;
using pytorch::Snapshot;
using pytorch::TraceEntry;
using testing::exported;
using testing::kCpu;
using testing::kGpu;
using testing::kGpu1;
using testing::Scenario;
using testing::small_run;

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "." + test->name() + "." + std::to_string(::getpid());
    for (char& letter : name) letter = letter == '/' ? '_' : letter;
    path = ::testing::TempDir() + name + ".pickle";
    std::ofstream(path, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { ::unlink(path.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path;
};

Snapshot read_back(const Store& store, const ExportOptions& options = {}) {
  const TemporaryFile file(exported(store, "pytorch", options));
  auto snapshot = pytorch::read_snapshot(file.path, {});
  EXPECT_TRUE(snapshot.ok()) << snapshot.error().message;
  EXPECT_THAT(snapshot->unknown_keys, ::testing::IsEmpty());
  EXPECT_THAT(snapshot->unknown_actions, ::testing::IsEmpty());
  return std::move(*snapshot);
}

// "function (file:line)" from the innermost frame to the outermost.
std::vector<std::string> frames(const Definitions& definitions, StackId stack) {
  std::vector<std::string> names;
  for (; stack.valid(); stack = definitions.stacks[stack.value].parent) {
    const Location& location = definitions.locations[definitions.stacks[stack.value].location.value];
    const std::string file = location.file.valid() ? definitions.strings[location.file.value] : "";
    names.push_back(definitions.strings[location.function.value] + " (" + file + ":" + std::to_string(location.line) +
                    ")");
  }
  return names;
}

struct Seen {
  Action action;
  std::uint64_t address;
  std::uint64_t size;
  std::int64_t time_us;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> seen(const pytorch::DeviceTrace& trace) {
  std::vector<Seen> entries;
  for (const TraceEntry& entry : trace.entries)
    entries.push_back({entry.action, entry.address, entry.size, entry.time_us});
  return entries;
}

TEST(PytorchExport, CategoriesAreTheOutermostFrames) {
  const Attribution attribution = testing::small_attribution();
  ExportOptions options;
  options.attribution = &attribution;
  const Snapshot snapshot = read_back(small_run().store(), options);
  const auto& entries = snapshot.traces.at(0).entries;  // c, its free, a
  EXPECT_THAT(frames(snapshot.definitions, entries.at(0).stack),
              ::testing::ElementsAre("step (/w/train.py:5)", "main (/w/train.py:9)", "temporary (tidemark:0)"));
  EXPECT_EQ(frames(snapshot.definitions, entries.back().stack).back(), "activation (tidemark:0)") << "the free of a";
}

TEST(PytorchExport, ContainsOnlySelectedBlocks) {
  Scenario scenario = small_run();
  scenario.out_of_memory(50, 4096, kGpu);
  ExportOptions options;
  options.device = "cuda:0";
  options.filter = BlockFilter({false, true, true, false});  // a, d
  const Snapshot snapshot = read_back(scenario.store(), options);
  EXPECT_EQ(seen(snapshot.traces.at(0)), (std::vector<Seen>{{Action::allocate, 8192, 300, 0},
                                                            {Action::free_requested, 8192, 300, 0},
                                                            {Action::free_completed, 8192, 300, 0},
                                                            {Action::out_of_memory, 0, 4096, 0}}));
  ASSERT_EQ(snapshot.segments.size(), 1U);
  EXPECT_EQ(snapshot.segments[0].allocated_size, 0U) << "b is left out";
}

// small_run() has blocks c, a, d, b at 4096, 8192, 12288, 16384 in the order of their birth.
TEST(PytorchExport, HasEachAllocationAndFreeOfARecording) {
  Scenario scenario = small_run();
  scenario.definitions.process.start_wall_ns = 1'700'000'000'000'000'000;
  for (Event& event : scenario.events) event.time_ns *= 1000;
  const Snapshot snapshot = read_back(scenario.store());
  constexpr std::int64_t kStart = 1'700'000'000'000'000;
  ASSERT_EQ(snapshot.traces.size(), 2U) << "cuda:0 and, after it, the CPU";
  EXPECT_EQ(seen(snapshot.traces[0]), (std::vector<Seen>{{Action::allocate, 4096, 100, kStart + 5},
                                                         {Action::free_requested, 4096, 100, kStart + 8},
                                                         {Action::free_completed, 4096, 100, kStart + 8},
                                                         {Action::allocate, 8192, 300, kStart + 10},
                                                         {Action::allocate, 16384, 500, kStart + 30},
                                                         {Action::free_requested, 8192, 300, kStart + 40},
                                                         {Action::free_completed, 8192, 300, kStart + 40}}));
  EXPECT_EQ(seen(snapshot.traces[1]), (std::vector<Seen>{{Action::allocate, 12288, 64, kStart + 20}}));
  EXPECT_EQ(snapshot.traces[1].device, 1);
  EXPECT_THAT(frames(snapshot.definitions, snapshot.traces[0].entries[3].stack),
              ::testing::ElementsAre("forward (/w/model.py:3)", "main (/w/train.py:9)"));
  EXPECT_FALSE(snapshot.traces[1].entries[0].stack.valid());
}

// PyTorch's viewer goes backwards from the end, and fails for a block outside of all segments: pages contain all blocks
// of the recording. A GPU's have 2 MiB, the CPU's 4 KiB.
TEST(PytorchExport, SegmentsOfARecordingArePagesThatBlocksUsed) {
  Scenario scenario = small_run();
  scenario.allocate(50, "far", 5000, kCpu);  // from 20480 to 25480: pages 5 and 6
  const Snapshot snapshot = read_back(scenario.store());
  ASSERT_EQ(snapshot.segments.size(), 3U);
  const pytorch::SnapshotSegment& gpu = snapshot.segments[0];
  EXPECT_EQ(std::tuple(gpu.device, gpu.address, gpu.total_size), std::tuple(0, 0U, 2U << 20));
  EXPECT_EQ(std::tuple(gpu.allocated_size, gpu.active_size, gpu.requested_size), std::tuple(500U, 500U, 500U));
  ASSERT_EQ(gpu.blocks.size(), 3U);
  EXPECT_EQ(gpu.blocks[0].size, 16384U);
  EXPECT_EQ(gpu.blocks[0].state, BlockState::inactive);
  EXPECT_EQ(gpu.blocks[1].size, 500U);
  EXPECT_EQ(gpu.blocks[1].state, BlockState::active_allocated);
  EXPECT_EQ(gpu.blocks[2].size, (2U << 20) - 16884);
  EXPECT_EQ(std::tuple(snapshot.segments[1].device, snapshot.segments[1].address, snapshot.segments[1].total_size),
            std::tuple(1, 12288U, 4096U));
  EXPECT_EQ(std::tuple(snapshot.segments[2].device, snapshot.segments[2].address, snapshot.segments[2].total_size),
            std::tuple(1, 20480U, 8192U));
  EXPECT_THAT(frames(snapshot.definitions, gpu.stack),
              ::testing::ElementsAre("a recording does not know segments: these are pages of cuda:0 that blocks used "
                                     "(tidemark:0)"));
}

TEST(PytorchExport, DevicesKeepTheirNumbersWhenOneIsAskedFor) {
  Scenario scenario = small_run();
  scenario.allocate(50, "e", 4096, kGpu1);
  std::vector<std::string> told;
  ExportOptions options;
  options.tell = [&](const std::string& remark) { told.push_back(remark); };
  const Snapshot all = read_back(scenario.store(), options);
  ASSERT_EQ(all.traces.size(), 3U);
  EXPECT_EQ(all.traces[1].device, 1);
  EXPECT_EQ(all.traces[1].entries.size(), 1U);
  EXPECT_THAT(told, ::testing::ElementsAre("cpu is device 2 in PyTorch's viewer, which knows GPUs only"));
  options.device = "cpu";
  const Snapshot cpu = read_back(scenario.store(), options);
  ASSERT_EQ(cpu.traces.size(), 1U);
  EXPECT_EQ(cpu.traces[0].device, 2);
  ASSERT_EQ(cpu.segments.size(), 1U);
  EXPECT_EQ(cpu.segments[0].device, 2);
}

TEST(PytorchExport, ARecordingReadAgainIsTheSame) {
  Scenario scenario = small_run();
  scenario.out_of_memory(60, 1 << 20, testing::kGpu);
  const Store store = scenario.store();
  const TemporaryFile file(exported(store, "pytorch"));
  const auto again = open_store(file.path);
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->devices.size(), 2U);
  const DeviceSummary& gpu = again->devices[0];
  EXPECT_EQ(to_string(gpu.device), "cuda:0");
  EXPECT_EQ(to_string(again->devices[1].device), "cpu");
  EXPECT_EQ(gpu.peak_allocated_bytes, 800U) << "in recorded blocks";
  EXPECT_EQ(gpu.peak_count, 2U);
  EXPECT_EQ(std::tuple(gpu.allocation_count, gpu.free_count, gpu.live_allocated_bytes), std::tuple(3U, 2U, 500U));
  EXPECT_EQ(gpu.peak_reserved_bytes, std::nullopt) << "the pages that blocks used are no answer";
  EXPECT_EQ(again->devices[1].peak_allocated_bytes, 64U) << "not rounded to 512";
  EXPECT_TRUE(again->segment_changes.empty());
  EXPECT_TRUE(again->blocks.requested.empty());
  ASSERT_EQ(again->out_of_memory.size(), 1U);
  EXPECT_EQ(again->out_of_memory[0].requested, 1U << 20);
  EXPECT_EQ(again->source.issues, (std::vector{QualityIssue{QualityId::exported_recording, std::nullopt}}));
}

TEST(PytorchExport, NamesAreValidTextWhateverTheyAre) {
  Scenario scenario;
  const StackId stack = scenario.stack({scenario.python("f\xff\x1b[2J", "a\xc3", 1)});
  scenario.allocate(1, "a", 8, kCpu, stack);
  const Snapshot snapshot = read_back(scenario.store());
  EXPECT_THAT(frames(snapshot.definitions, snapshot.traces[0].entries[0].stack),
              ::testing::ElementsAre("f\xEF\xBF\xBD\\x1b[2J (a\xEF\xBF\xBD:1)"));
}

TEST(PytorchExport, AFailedOutputIsReported) {
  const Store store = small_run().store();
  Symbols symbols(store.definitions);
  for (const ExportFormat& format : export_formats()) {
    if (std::string_view(format.name) != "pytorch") continue;
    const auto written =
        format.write(store, symbols, {}, [](std::string_view) -> Result<void> { return Error{"disk full"}; }, {});
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().message, "disk full");
  }
}

TEST(PytorchExport, HasMarksAndRanges) {
  Scenario scenario = small_run();
  const StringId warmup{static_cast<std::uint32_t>(scenario.definitions.strings.size())};
  scenario.definitions.strings.insert(scenario.definitions.strings.end(), {"warm up", "checkpoint"});
  for (Event& event : scenario.events) event.time_ns *= 1000;
  scenario.definitions.marks = {{Mark::Kind::range_begin, 6000, warmup, {}},
                                {Mark::Kind::point, 15000, StringId{warmup.value + 1}, {}},
                                {Mark::Kind::range_end, 35000, warmup, {}}};
  const Snapshot snapshot = read_back(scenario.store());
  ASSERT_EQ(snapshot.annotations.size(), 2U);
  EXPECT_TRUE(snapshot.annotations[0].start);
  EXPECT_EQ(snapshot.annotations[0].time_us, 6);
  EXPECT_EQ(snapshot.definitions.strings[snapshot.annotations[0].name.value], "warm up");
  EXPECT_FALSE(snapshot.annotations[1].start);
  EXPECT_EQ(snapshot.annotations[1].time_us, 35);
  const pytorch::DeviceTrace& trace = snapshot.traces[0];
  ASSERT_EQ(trace.user_metadata.size(), 1U);
  EXPECT_EQ(snapshot.definitions.strings[trace.user_metadata[0].text.value], "checkpoint");
  const TraceEntry& mark = trace.entries[trace.user_metadata[0].entry];
  EXPECT_EQ(mark.action, Action::user_defined);
  EXPECT_EQ(mark.time_us, 15);
}

using Held = std::map<std::vector<std::string>, std::pair<std::uint64_t, std::uint64_t>>;

Held held_at_peak(const Overview& overview, std::uint8_t device) {
  Held held;
  for (const StackUsage& usage : overview.stacks_at_peak) {
    if (usage.device != device) continue;
    auto& [bytes, blocks] = held[frames(overview.definitions, usage.stack)];
    bytes += usage.bytes;
    blocks += usage.blocks;
  }
  return held;
}

class ExportedSnapshot : public pytorch::testing::RecordedSnapshot {};

TEST_P(ExportedSnapshot, ReadAgainIsTheSame) {
  const auto store = open_store(GetParam() + ".pickle.xz");
  ASSERT_TRUE(store.ok()) << store.error().message;
  const TemporaryFile file(exported(*store, "pytorch"));
  const auto again = open_store(file.path);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->event_count, store->event_count);
  EXPECT_EQ(again->end_ns, store->end_ns);
  EXPECT_EQ(again->definitions.process.start_wall_ns, store->definitions.process.start_wall_ns);
  EXPECT_EQ(again->source.allocator_settings->text, store->source.allocator_settings->text);
  EXPECT_EQ(again->source.issues.size(), store->source.issues.size());
  ASSERT_EQ(again->devices.size(), store->devices.size());
  for (std::size_t index = 0; index < store->devices.size(); ++index) {
    const DeviceSummary& expected = store->devices[index];
    const DeviceSummary& actual = again->devices[index];
    EXPECT_EQ(actual.device, expected.device);
    EXPECT_EQ(actual.peak_allocated_bytes, expected.peak_allocated_bytes);
    EXPECT_EQ(actual.peak_allocated_at_ns, expected.peak_allocated_at_ns);
    EXPECT_EQ(actual.peak_active_bytes, expected.peak_active_bytes);
    EXPECT_EQ(actual.peak_reserved_bytes, expected.peak_reserved_bytes);
    EXPECT_EQ(actual.end_active_bytes, expected.end_active_bytes);
    EXPECT_EQ(actual.end_reserved_bytes, expected.end_reserved_bytes);
    EXPECT_EQ(actual.live_allocated_bytes, expected.live_allocated_bytes);
    EXPECT_EQ(actual.allocation_count, expected.allocation_count);
    EXPECT_EQ(actual.free_count, expected.free_count);
    EXPECT_EQ(actual.baseline_bytes, expected.baseline_bytes);
    EXPECT_EQ(actual.total_bytes_allocated, expected.total_bytes_allocated);
    const auto device = static_cast<std::uint8_t>(index);
    EXPECT_TRUE(held_at_peak(*again, device) == held_at_peak(*store, device));
  }
  ASSERT_EQ(again->out_of_memory.size(), store->out_of_memory.size());
  for (std::size_t index = 0; index < store->out_of_memory.size(); ++index) {
    EXPECT_EQ(again->out_of_memory[index].allocated, store->out_of_memory[index].allocated);
    EXPECT_EQ(again->out_of_memory[index].device_free, store->out_of_memory[index].device_free);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ExportedSnapshot, ::testing::ValuesIn(pytorch::testing::snapshots_of_settings()),
                         pytorch::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Shared, ExportedSnapshot,
                         ::testing::ValuesIn(pytorch::testing::shared_snapshots(
                             {"healthy", "oom", "varlen", "varlen_expandable", "varlen_max_split_64",
                              "lora_python_stacks", "lora_native_stacks"})),
                         pytorch::testing::test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExportedSnapshot);

}  // namespace
}  // namespace tidemark
