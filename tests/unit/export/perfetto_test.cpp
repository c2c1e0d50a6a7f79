// Reads the format back with protozero's reader, by the field numbers of Perfetto's protos.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "unit/export/export_support.h"

namespace tidemark {
namespace {

using protozero::pbf_reader;
using testing::exported;
using testing::kGpu;
using testing::Scenario;
using testing::small_run;

// The content of a trace, in words.
class Trace {
 public:
  explicit Trace(const std::string& bytes) {
    for (pbf_reader trace(bytes); trace.next();) {
      EXPECT_EQ(trace.tag(), 1U);
      read_packet(trace.get_message());
    }
  }

  std::map<std::uint64_t, std::string> tracks;               // name by number
  std::map<std::uint64_t, std::uint64_t> parents;            // by number
  std::map<std::string, std::vector<std::string>> counters;  // "time=value" by track
  std::vector<std::string> instants;                         // "time track: name annotation=value ..."
  std::vector<std::string> slices;  // "time begin name" or "time end", after the track's number
  std::vector<std::string> clocks;  // "clock=time"

 private:
  void read_packet(pbf_reader packet) {
    std::uint64_t time = 0;
    bool has_sequence = false;
    while (packet.next()) {
      switch (packet.tag()) {
        case 6:
          read_clocks(packet.get_message());
          break;
        case 8:
          time = packet.get_uint64();
          break;
        case 10:
          has_sequence = packet.get_uint32() != 0;
          break;
        case 11:
          read_event(time, packet.get_message());
          break;
        case 60:
          read_track(packet.get_message());
          break;
        default:
          ADD_FAILURE() << "field " << packet.tag();
      }
    }
    EXPECT_TRUE(has_sequence);
  }
  void read_clocks(pbf_reader snapshot) {
    while (snapshot.next(1)) {
      pbf_reader clock = snapshot.get_message();
      clock.next(1);
      const std::uint32_t id = clock.get_uint32();
      clock.next(2);
      clocks.push_back(std::to_string(id) + "=" + std::to_string(clock.get_uint64()));
    }
  }
  void read_track(pbf_reader track) {
    std::uint64_t number = 0;
    std::uint64_t parent = 0;
    std::string name;
    while (track.next()) {
      if (track.tag() == 1) {
        number = track.get_uint64();
      } else if (track.tag() == 2) {
        name = track.get_string();
      } else if (track.tag() == 5) {
        parent = track.get_uint64();
      } else if (track.tag() == 8) {
        pbf_reader counter = track.get_message();
        EXPECT_TRUE(counter.next(3));
        EXPECT_EQ(counter.get_enum(), 3);  // UNIT_SIZE_BYTES
      } else {
        name = (track.tag() == 3 ? "process" : "thread") + fields(track.get_message());
      }
    }
    EXPECT_FALSE(tracks.contains(number));
    EXPECT_TRUE(parent == 0 || tracks.contains(parent));
    tracks[number] = name;
    parents[number] = parent;
  }
  void read_event(std::uint64_t time, pbf_reader event) {
    std::int32_t type = 0;
    std::uint64_t number = 0;
    std::string track;
    std::string text;
    while (event.next()) {
      if (event.tag() == 9) {
        type = event.get_enum();
      } else if (event.tag() == 11) {
        number = event.get_uint64();
        track = tracks.at(number);
      } else if (event.tag() == 23) {
        text = event.get_string();
      } else if (event.tag() == 30) {
        counters[track].push_back(std::to_string(time) + "=" + std::to_string(event.get_int64()));
      } else {
        text += fields(event.get_message());
      }
    }
    if (type == 1 || type == 2) {  // TYPE_SLICE_BEGIN, TYPE_SLICE_END
      EXPECT_EQ(track, "annotations");
      EXPECT_EQ(text.empty(), type == 2);
      slices.push_back(std::to_string(number & 0xF) + ": " + std::to_string(time) + (type == 1 ? " begin " : " end") +
                       text);
      return;
    }
    EXPECT_EQ(type, text.empty() ? 4 : 3);  // TYPE_COUNTER, TYPE_INSTANT
    if (!text.empty()) instants.push_back(std::to_string(time) + " " + track + ": " + text);
  }
  static std::string fields(pbf_reader message) {
    std::string text;
    while (message.next()) {
      text += " ";
      text += message.wire_type() == protozero::pbf_wire_type::varint ? std::to_string(message.get_uint64())
                                                                      : message.get_string();
    }
    return text;
  }
};

TEST(PerfettoExport, HasCountersForEachDevice) {
  const Trace trace(exported(small_run().store("/tmp/run.tide"), "perfetto"));
  EXPECT_THAT(
      trace.counters,
      ::testing::UnorderedElementsAre(
          ::testing::Pair("cuda:0 allocated", ::testing::ElementsAre("5=124", "8=24", "10=324", "30=824", "40=524")),
          ::testing::Pair("cuda:0 reserved", ::testing::ElementsAre("5=4096")),
          ::testing::Pair("cpu allocated", ::testing::ElementsAre("20=64"))));
  ASSERT_FALSE(trace.tracks.empty());
  EXPECT_THAT(trace.clocks, ::testing::IsEmpty());
}

TEST(PerfettoExport, EachCategoryHasACounter) {
  const Attribution attribution = testing::small_attribution();
  ExportOptions options;
  options.device = "cuda:0";
  options.attribution = &attribution;
  const Trace trace(exported(small_run().store("/tmp/run.tide"), "perfetto", options));
  EXPECT_THAT(trace.counters.at("cuda:0 activation"), ::testing::ElementsAre("10=300", "40=0"));
  EXPECT_THAT(trace.counters.at("cuda:0 parameter"), ::testing::ElementsAre("30=500"));
  EXPECT_FALSE(trace.counters.contains("cuda:0 unknown"));
}

TEST(PerfettoExport, ChosenBlocksHaveACounterBesideTheDevices) {
  const Attribution attribution = testing::small_attribution();
  ExportOptions options;
  options.device = "cuda:0";
  options.attribution = &attribution;
  options.filter = BlockFilter({true, true, false, false});  // c, a
  const Trace trace(exported(small_run().store("/tmp/run.tide"), "perfetto", options));
  EXPECT_THAT(trace.counters.at("cuda:0 chosen blocks"), ::testing::ElementsAre("5=100", "8=0", "10=300", "40=0"));
  EXPECT_THAT(trace.counters.at("cuda:0 activation"), ::testing::ElementsAre("10=300", "40=0"));
  EXPECT_FALSE(trace.counters.contains("cuda:0 parameter"));
  EXPECT_THAT(trace.counters.at("cuda:0 allocated"), ::testing::Contains("30=824")) << "as the allocator says";
}

TEST(PerfettoExport, CountersBelongToTheProcess) {
  Scenario scenario = small_run();
  scenario.definitions.process.command_line = "python train.py";
  const Trace trace(exported(scenario.store("/tmp/run.tide"), "perfetto"));
  const std::uint64_t process = trace.tracks.begin()->first;
  EXPECT_EQ(trace.tracks.at(process), "process 123 python train.py pid 123 run.tide");
  for (const auto& [track, parent] : trace.parents) EXPECT_EQ(parent, track == process ? 0 : process);
}

TEST(PerfettoExport, MarksFailedRequestsOnTheirThread) {
  Scenario scenario = small_run();
  scenario.out_of_memory(50, 4096, kGpu, scenario.stack({scenario.python("f", "f.py", 1)}));
  scenario.out_of_memory(60, 512, kGpu);
  scenario.events[scenario.events.size() - 2].thread = ThreadId{0};
  const Trace trace(exported(scenario.store(), "perfetto"));
  EXPECT_THAT(trace.instants,
              ::testing::ElementsAre("50 thread 123 77 python: out of memory: 4.0 KiB on cuda:0 requested_bytes 4096 "
                                     "allocated_bytes 524 reserved_bytes 4096 stack f (f.py:1)",
                                     ::testing::StartsWith("60 process 123")));
}

TEST(PerfettoExport, TimesAreTheWallClocksWhereItIsKnown) {
  Scenario scenario = small_run();
  scenario.definitions.process.start_wall_ns = 1'700'000'000'000'000'000;
  const Trace trace(exported(scenario.store(), "perfetto"));
  EXPECT_THAT(trace.clocks, ::testing::ElementsAre("1=1700000000000000000", "6=1700000000000000000"));
  EXPECT_EQ(trace.counters.at("cpu allocated")[0], "1700000000000000020=64");
}

TEST(PerfettoExport, WithoutAProcessTheFileIsTheGroup) {
  Scenario scenario = small_run();
  scenario.definitions.process.pid = std::nullopt;
  Store store = scenario.store("/tmp/snapshot.pickle");
  store.source.kind = SourceKind::pytorch_snapshot;
  const Trace trace(exported(store, "perfetto", {"cpu", {}}));
  EXPECT_EQ(trace.tracks.begin()->second, "snapshot.pickle");
  EXPECT_EQ(trace.tracks.size(), 2U);
}

// Active memory has a counter if it ever differs from the allocated memory.
TEST(PerfettoExport, ShowsWhatAwaitsItsStream) {
  StoreBuilder builder;
  const Scenario scenario = small_run();
  for (const Event& event : scenario.events) builder.add(event);
  builder.add_totals(kGpu, 45, {824, 4096});  // 300 more than allocated
  const Store store = std::move(builder).finish("run.tide", scenario.definitions);
  const Trace trace(exported(store, "perfetto", {"cuda:0", {}}));
  EXPECT_EQ(trace.counters.at("cuda:0 active").back(), "45=824");
  EXPECT_EQ(trace.counters.at("cuda:0 allocated").back(), "40=524");
}

TEST(PerfettoExport, RangesAreSlicesThatNest) {
  Scenario scenario = small_run();
  using Kind = Mark::Kind;
  scenario.mark(Kind::range_begin, 1, "step");
  scenario.mark(Kind::range_begin, 2, "inner");
  scenario.mark(Kind::point, 3, "now");
  scenario.mark(Kind::range_begin, 4, "across");  // begins in inner, ends after it
  scenario.mark(Kind::range_end, 5, "inner");
  scenario.mark(Kind::range_end, 6, "across");
  scenario.mark(Kind::range_end, 7, "step");
  scenario.mark(Kind::range_begin, 8, "open\x1b");  // never ends: to the end of the run, 40
  const Trace trace(exported(scenario.store(), "perfetto"));
  // Tracks: 1 the process, 2 to 4 the counters, then these.
  EXPECT_THAT(trace.slices,
              ::testing::ElementsAre("5: 1 begin step", "5: 2 begin inner", "6: 4 begin across", "5: 5 end", "5: 7 end",
                                     "6: 6 end", "5: 8 begin open\\x1b", "5: 40 end"));
  EXPECT_THAT(trace.instants, ::testing::ElementsAre("3 annotations: now"));
}

TEST(PerfettoExport, TracesOfTwoRanksShareNoTrack) {
  Scenario scenario = small_run();
  const Trace one(exported(scenario.store("run.rank0.tide"), "perfetto"));
  scenario.definitions.process.pid = 124;
  const Trace other(exported(scenario.store("run.rank1.tide"), "perfetto"));
  for (const auto& [track, name] : one.tracks) EXPECT_FALSE(other.tracks.contains(track)) << name;
}

}  // namespace
}  // namespace tidemark
