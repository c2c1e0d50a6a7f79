// A window compared with a recording of everything: its content must be the same.
#include "trace/window_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "temporary_folder.h"
#include "trace/segment_joiner.h"
#include "unit/trace/random_program.h"

namespace tidemark::testing {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};
constexpr std::uint64_t kSecond = 1'000'000'000;

class WindowWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<WindowWriter> window(WindowLimits limits) {
    const auto open = [this](std::string& path) {
      path = folder.at(fmt::format("{}.tide", ++opened));
      return open_file_sink(path, false);
    };
    auto writer = WindowWriter::create(open, limits, {});
    EXPECT_TRUE(writer.ok());
    return std::move(*writer);
  }
  [[nodiscard]] std::uint64_t bytes_on_disk() const {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) bytes += file.file_size();
    return bytes;
  }
  [[nodiscard]] std::size_t files_on_disk() const {
    const std::filesystem::directory_iterator files(folder.path());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }
  static Recording read(const std::string& path) { return read_all(TraceReader::open(path)); }
  static Recording join(const SegmentFiles& segments) {
    Bytes bytes;
    const auto joined = join_segments(segments, make_memory_sink(&bytes));
    EXPECT_TRUE(joined.ok());
    Recording recording = read_all(bytes);
    std::uint64_t lead_in = 0;
    if (!recording.events.empty() && recording.events.front().kind == EventKind::pause) {
      while (recording.events[lead_in].kind != EventKind::resume) ++lead_in;
      ++lead_in;
    }
    EXPECT_EQ(joined->event_count + lead_in, recording.events.size());
    return recording;
  }

  TemporaryFolder folder;
  int opened = 0;
};

TEST_F(WindowWriterTest, JoinedSegmentsAreTheLastPartOfTheFullRecording) {
  Bytes bytes;
  const auto full = write_to(&bytes);
  const auto writer = window({10 * kSecond, 0});
  RandomProgram program({full.get(), writer.get()}, 1);
  for (int n = 0; n < 60'000; ++n) {
    program.step(1'000'000, 50);
    if (writer->is_due(program.now_ns())) {
      ASSERT_TRUE(writer->next_segment(program.now_ns()).ok());
    }
  }
  ASSERT_TRUE(full->finish({program.now_ns(), true}).ok());
  ASSERT_TRUE(writer->finish({program.now_ns(), true}).ok());
  const Recording everything = read_all(bytes);
  const Recording joined = join(writer->complete());
  expect_window(joined, everything);
  const std::uint64_t begin = writer->complete().front()->begin_ns;
  EXPECT_LE(begin, program.now_ns() - 10 * kSecond);
  EXPECT_GE(begin, program.now_ns() - 10 * kSecond * 5 / 4);
  ASSERT_TRUE(joined.definitions.end.has_value());
  EXPECT_TRUE(joined.definitions.end->process_exited);
  ASSERT_EQ(joined.definitions.threads.size(), 1U);
  ASSERT_EQ(joined.definitions.nn_modules.size(), 1U);
  EXPECT_EQ(joined.definitions.strings[joined.definitions.nn_module_names.front().type.value], "Model");
  // Each segment is one on its own.
  for (const auto& segment : writer->complete()) {
    const Recording part = read(segment->path());
    EXPECT_EQ(part.error, "");
    ASSERT_GT(part.events.size(), 2U);
    EXPECT_EQ(part.events.front().kind, EventKind::pause);
  }
}

TEST_F(WindowWriterTest, BytesOnDiskAndDefinitionsStayBounded) {
  constexpr std::uint64_t kKept = 1 << 20;
  const auto writer = window({0, kKept});
  RandomProgram program({writer.get()}, 2);
  std::uint64_t most = 0;
  std::uint64_t rotations = 0;
  std::size_t most_definitions = 0;
  for (int n = 0; n < 300'000; ++n) {
    program.step(1'000, 1'000'000);  // each allocation from a separate place
    if (!writer->is_due(program.now_ns())) continue;
    if (++rotations > 12) most = std::max(most, bytes_on_disk());
    if (writer->has_grown()) {
      writer->definitions().keep(program.thread(0));
      writer->definitions().keep(program.module(0));
      writer->sweep();
    }
    most_definitions = std::max(most_definitions, writer->definitions().count());
    ASSERT_TRUE(writer->next_segment(program.now_ns()).ok());
    if (rotations > 12) {
      EXPECT_GE(writer->bytes_written(), kKept);
    }
  }
  EXPECT_GT(rotations, 14U);
  EXPECT_LT(most, kKept * 3 / 2);
  EXPECT_LT(most_definitions, 100'000U);  // of 150,000 allocations from as many places
  ASSERT_TRUE(writer->finish({program.now_ns(), true}).ok());
}

TEST_F(WindowWriterTest, BothLimitsHold) {
  const auto writer = window({kSecond, 1 << 30});
  RandomProgram program({writer.get()}, 3);
  for (int n = 0; n < 10'000; ++n) {
    program.step(1'000'000, 50);
    if (writer->is_due(program.now_ns())) {
      ASSERT_TRUE(writer->next_segment(program.now_ns()).ok());
    }
  }
  EXPECT_LE(writer->complete().size(), 10U);
  EXPECT_EQ(writer->complete().size() + 1, files_on_disk());
}

TEST_F(WindowWriterTest, SegmentsBeginWithLossesRangesTensorsAndDevices) {
  const auto writer = window({kSecond, 0});
  RandomProgram program({writer.get()}, 4);
  for (int n = 0; n < 100; ++n) program.step(1'000, 50);
  Event parameter;
  parameter.device = kGpu;
  parameter.address = 0x7000'0000;
  parameter.size = 4096;
  parameter.time_ns = program.now_ns();
  ASSERT_TRUE(writer->event(parameter).ok());
  ModelTensor alive;
  alive.device = kGpu;
  alive.address = 0x7000'0100;  // inside its block
  alive.name = writer->string("weight");
  alive.module = program.module(0);
  writer->tensor(alive);
  ModelTensor dead = alive;
  dead.address = 0x9000'0000;
  writer->tensor(dead);
  const StringId run = writer->string("training");
  const StringId step = writer->string("step");
  writer->mark({Mark::Kind::range_begin, 10, run, program.thread(0)});
  writer->mark({Mark::Kind::range_begin, 20, step, program.thread(0)});
  writer->mark({Mark::Kind::range_end, 30, step, program.thread(0)});
  writer->loss({QualityId::ring_full, 5});
  writer->sample(SampledDevice{"nvidia", 0, {}, 0, "H100", "", "", 80});
  ASSERT_TRUE(writer->next_segment(kSecond).ok());
  writer->loss({QualityId::ring_full, 2});
  writer->mark({Mark::Kind::range_end, kSecond + 1, run, program.thread(0)});
  ASSERT_TRUE(writer->finish({kSecond + 2, true}).ok());

  const Recording second = read(writer->complete().back()->path());
  EXPECT_EQ(second.lost(QualityId::ring_full), 7U);
  ASSERT_EQ(second.definitions.tensors.size(), 1U);
  EXPECT_EQ(second.definitions.tensors[0].address, alive.address);
  EXPECT_EQ(second.definitions.strings[second.definitions.tensors[0].name.value], "weight");
  ASSERT_EQ(second.definitions.marks.size(), 2U);
  EXPECT_EQ(second.definitions.strings[second.definitions.marks[0].name.value], "training");

  const Recording joined = join(writer->complete());
  EXPECT_EQ(joined.lost(QualityId::ring_full), 7U);
  EXPECT_EQ(joined.definitions.tensors.size(), 2U);
  EXPECT_EQ(joined.definitions.marks.size(), 4U);
  EXPECT_EQ(joined.definitions.threads.size(), 1U);
}

TEST_F(WindowWriterTest, APausedProgramStaysPausedInTheNextSegment) {
  const auto writer = window({kSecond, 0});
  RandomProgram program({writer.get()}, 5);
  for (int n = 0; n < 10; ++n) program.step(1'000, 50);
  Event pause;
  pause.kind = EventKind::pause;
  pause.time_ns = program.now_ns();
  pause.thread = program.thread(0);
  ASSERT_TRUE(writer->event(pause).ok());
  ASSERT_TRUE(writer->next_segment(kSecond).ok());
  Event resume = pause;
  resume.kind = EventKind::resume;
  resume.time_ns = kSecond + 5;
  ASSERT_TRUE(writer->event(resume).ok());
  ASSERT_TRUE(writer->finish({kSecond + 6, true}).ok());
  const Recording second = read(writer->complete().back()->path());
  ASSERT_GE(second.events.size(), 4U);
  EXPECT_EQ(second.events[second.events.size() - 2].kind, EventKind::pause);
  EXPECT_EQ(second.events[second.events.size() - 2].time_ns, kSecond);
  const Recording joined = join(writer->complete());
  EXPECT_EQ(joined.events.size(), 12U);  // ten, the pause and its end
}

TEST_F(WindowWriterTest, FilesGoWithTheirLastOwner) {
  auto writer = window({kSecond, 0});
  RandomProgram program({writer.get()}, 6);
  program.step(1, 1);
  ASSERT_TRUE(writer->finish({1, true}).ok());
  SegmentFiles kept = writer->complete();
  writer = nullptr;
  EXPECT_EQ(files_on_disk(), 1U);
  kept.clear();
  EXPECT_EQ(files_on_disk(), 0U);

  writer = window({kSecond, 0});
  ASSERT_TRUE(writer->finish({1, true}).ok());
  writer->complete().front()->leave();
  writer = nullptr;
  EXPECT_EQ(files_on_disk(), 1U);
}

}  // namespace
}  // namespace tidemark::testing
