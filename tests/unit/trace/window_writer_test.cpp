// A window against a recording of everything: what is in it must be the same.
#include "trace/window_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "temporary_folder.h"
#include "trace/join_segments.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};
constexpr std::uint64_t kSecond = 1'000'000'000;

std::string text_of(const Recording& recording, StackId stack) {
  std::string text;
  const Definitions& definitions = recording.definitions;
  for (; stack.valid(); stack = definitions.stacks[stack.value].parent) {
    const Location& location = definitions.locations[definitions.stacks[stack.value].location.value];
    text += fmt::format("{}:{} ", definitions.strings[location.file.value], location.line);
    if (location.nn_module.valid()) {
      text += fmt::format("[{:x}] ", definitions.nn_modules[location.nn_module.value].address);
    }
  }
  return text;
}

std::string text_of(const Recording& recording, const Event& event) {
  const Definitions& definitions = recording.definitions;
  const std::string thread = event.thread.valid() ? definitions.threads[event.thread.value].name : "-";
  const std::string node =
      event.node.valid() ? definitions.strings[definitions.autograd_nodes[event.node.value].type.value] : "-";
  return fmt::format("{} t{} {} {:x} {} {} {} [{}] {} {} {}", static_cast<int>(event.kind), event.time_ns,
                     to_string(event.device), event.address, event.size, event.total_allocated, event.total_reserved,
                     text_of(recording, event.stack), thread, node, event.sequence);
}

/// A program that allocates and frees at random, told to several writers at once.
class Program {
 public:
  Program(std::vector<RecordingWriter*> writers, std::uint64_t seed) : writers_(std::move(writers)), random_(seed) {
    for (RecordingWriter* writer : writers_) {
      const ThreadId thread = writer->thread({4711, "main"});
      const NnModuleId module = writer->nn_module({0xabc});
      writer->nn_module_name({module, module, writer->string(""), writer->string("Model")});
      threads_.push_back(thread);
      modules_.push_back(module);
    }
  }

  /// One event `step_ns` later, of one of `places` places.
  void step(std::uint64_t step_ns, std::uint32_t places) {
    now_ns_ += step_ns;
    const std::uint64_t address = 0x1000 * (1 + random_() % 300);
    const auto line = static_cast<std::uint32_t>(random_() % places);
    const bool frees = live_.contains(address);
    Event event;
    event.kind = frees ? EventKind::free : EventKind::allocate;
    event.time_ns = now_ns_;
    event.device = address % 3 == 0 ? Device{} : kGpu;
    event.address = address;
    event.size = frees ? 0 : 512 * (1 + random_() % 100);
    if (frees) {
      allocated_ -= event.device == kGpu ? live_[address] : 0;
      live_.erase(address);
    } else {
      allocated_ += event.device == kGpu ? event.size : 0;
      live_[address] = event.size;
    }
    if (event.device == kGpu) {
      event.has_totals = true;
      event.total_allocated = allocated_;
      event.total_reserved = reserved_ = std::max(reserved_, allocated_);
    }
    for (std::size_t index = 0; index < writers_.size(); ++index) {
      RecordingWriter& writer = *writers_[index];
      Event own = event;
      own.thread = threads_[index];
      if (!frees) {
        Location inner;
        inner.file = writer.string(fmt::format("file{}.py", line % 7));
        inner.line = line;
        Location outer = inner;
        outer.line = 1;
        outer.nn_module = modules_[index];
        own.stack = writer.stack(writer.stack({}, writer.location(outer)), writer.location(inner));
        own.sequence = line;
        if (line % 2 == 0) own.node = writer.autograd_node({writer.string("AddBackward0"), threads_[index]});
      }
      ASSERT_TRUE(writer.event(own).ok());
    }
  }

  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  [[nodiscard]] ThreadId thread(std::size_t writer) const { return threads_[writer]; }
  [[nodiscard]] NnModuleId module(std::size_t writer) const { return modules_[writer]; }

 private:
  std::vector<RecordingWriter*> writers_;
  std::vector<ThreadId> threads_;
  std::vector<NnModuleId> modules_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, std::uint64_t> live_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
};

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

  /// What `recording`, a window of `full`, must hold.
  static void expect_window(const Recording& recording, const Recording& full) {
    ASSERT_EQ(recording.error, "");
    ASSERT_FALSE(recording.events.empty());
    std::vector<std::string> lead_in;
    std::vector<std::string> events;
    std::uint64_t begin_ns = 0;
    for (const Event& event : recording.events) {
      if (event.kind == EventKind::resume) {
        begin_ns = event.time_ns;
      } else if (event.kind == EventKind::pause) {
        EXPECT_EQ(event.time_ns, 0U);
      } else if (begin_ns == 0) {
        Event plain = event;
        plain.total_allocated = plain.total_reserved = 0;
        lead_in.push_back(text_of(recording, plain));
      } else {
        events.push_back(text_of(recording, event));
      }
    }
    ASSERT_NE(begin_ns, 0U);
    std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> live;  // address → time, text
    std::vector<std::string> expected;
    for (const Event& event : full.events) {
      if (event.time_ns > begin_ns) {
        expected.push_back(text_of(full, event));
      } else if (event.kind == EventKind::allocate) {
        Event plain = event;
        plain.total_allocated = plain.total_reserved = 0;
        live[event.address] = {event.time_ns, text_of(full, plain)};
      } else {
        live.erase(event.address);
      }
    }
    std::map<std::uint64_t, std::string> by_time;
    for (const auto& [address, block] : live) by_time[block.first] = block.second;
    std::vector<std::string> expected_lead_in;
    for (const auto& [time, text] : by_time) expected_lead_in.push_back(text);
    EXPECT_EQ(lead_in, expected_lead_in);
    EXPECT_EQ(events, expected);
  }

  TemporaryFolder folder;
  int opened = 0;
};

TEST_F(WindowWriterTest, JoinedSegmentsAreTheLastPartOfTheFullRecording) {
  Bytes bytes;
  const auto full = write_to(&bytes);
  const auto writer = window({10 * kSecond, 0});
  Program program({full.get(), writer.get()}, 1);
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
  Program program({writer.get()}, 2);
  std::uint64_t most = 0;
  std::uint64_t rotations = 0;
  std::size_t most_definitions = 0;
  for (int n = 0; n < 300'000; ++n) {
    program.step(1'000, 1'000'000);  // each allocation from a place of its own
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
  Program program({writer.get()}, 3);
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
  Program program({writer.get()}, 4);
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
  Program program({writer.get()}, 5);
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
  Program program({writer.get()}, 6);
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
