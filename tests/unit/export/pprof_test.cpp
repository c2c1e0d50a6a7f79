// Reads the format back with protozero's reader and zlib, by the field numbers of pprof's profile.proto.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "export/gzip.h"
#include "unit/export/export_support.h"

namespace tidemark {
namespace {

using protozero::pbf_reader;
using testing::exported;
using testing::kCpu;
using testing::Scenario;
using testing::small_run;

std::string unpacked(const std::string& packed, std::size_t size = 1 << 20) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  std::string bytes(size, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

struct Message {
  std::map<std::uint32_t, std::vector<std::uint64_t>> numbers;
  std::map<std::uint32_t, std::vector<std::string>> bytes;

  explicit Message(const std::string& data) {
    for (pbf_reader reader(data); reader.next();) {
      if (reader.wire_type() == protozero::pbf_wire_type::varint) {
        numbers[reader.tag()].push_back(reader.get_uint64());
      } else {
        bytes[reader.tag()].push_back(reader.get_string());
      }
    }
  }
  [[nodiscard]] std::uint64_t number(std::uint32_t tag) const { return numbers.at(tag).at(0); }
};

std::vector<std::uint64_t> packed_numbers(const std::string& data) {
  std::vector<std::uint64_t> numbers;
  const char* at = data.data();
  while (at != data.data() + data.size()) numbers.push_back(protozero::decode_varint(&at, data.data() + data.size()));
  return numbers;
}

class Profile {
 public:
  explicit Profile(const std::string& packed) : profile_(unpacked(packed)) {}

  [[nodiscard]] std::string text(std::uint64_t index) const { return profile_.bytes.at(6).at(index); }
  [[nodiscard]] const Message& message() const { return profile_; }

  /// "inuse_space bytes", ...
  [[nodiscard]] std::vector<std::string> sample_types() const {
    std::vector<std::string> types;
    for (const std::string& data : profile_.bytes.at(1)) {
      const Message type(data);
      types.push_back(text(type.number(1)) + " " + text(type.number(2)));
    }
    return types;
  }
  /// "device: innermost file:line < ... = values".
  [[nodiscard]] std::vector<std::string> samples() const {
    std::vector<std::string> lines;
    for (const std::string& data : profile_.bytes.at(2)) {
      const Message sample(data);
      const Message label(sample.bytes.at(3).at(0));
      EXPECT_EQ(text(label.number(1)), "device");
      std::string line = text(label.number(2)) + ":";
      for (const std::uint64_t location : packed_numbers(sample.bytes.at(1).at(0))) line += " " + frame(location);
      line += " =";
      for (const std::uint64_t value : packed_numbers(sample.bytes.at(2).at(0))) line += " " + std::to_string(value);
      lines.push_back(line);
    }
    return lines;
  }
  /// "device=cuda:0 category=parameter ..." of the sample.
  [[nodiscard]] std::string labels(std::size_t sample) const {
    const Message message(profile_.bytes.at(2).at(sample));
    std::string line;
    for (const std::string& data : message.bytes.at(3)) {
      const Message label(data);
      line += (line.empty() ? "" : " ") + text(label.number(1)) + "=" + text(label.number(2));
    }
    return line;
  }
  [[nodiscard]] std::vector<std::string> mappings() const {
    std::vector<std::string> files;
    for (const std::string& data : profile_.bytes.at(3)) files.push_back(text(Message(data).number(5)));
    return files;
  }
  [[nodiscard]] std::vector<std::string> comments() const {
    std::vector<std::string> lines;
    for (const std::uint64_t index : profile_.numbers.at(13)) lines.push_back(text(index));
    return lines;
  }

 private:
  [[nodiscard]] std::string frame(std::uint64_t id) const {
    const Message location(profile_.bytes.at(4).at(id - 1));
    EXPECT_EQ(location.number(1), id);
    EXPECT_LE(location.number(2), profile_.bytes.at(3).size());
    const Message line(location.bytes.at(4).at(0));
    const Message function(profile_.bytes.at(5).at(line.number(1) - 1));
    EXPECT_EQ(function.number(1), line.number(1));
    std::string name = text(function.number(2));
    if (function.number(4) != 0) name += "@" + text(function.number(4));
    return line.numbers.contains(2) ? name + ":" + std::to_string(line.number(2)) : name;
  }

  Message profile_;
};

// b comes first as the largest; unrecorded memory is the GPU's last.
TEST(PprofExport, LabelsContainOwners) {
  const Attribution attribution = testing::small_attribution();
  ExportOptions options;
  options.attribution = &attribution;
  const Profile profile(exported(small_run().store("/tmp/run.tide"), "pprof", options));
  EXPECT_EQ(profile.labels(0), "device=cuda:0 category=parameter phase=other component=mlp module=layers.0");
  EXPECT_EQ(profile.labels(2), "device=cuda:0 category=temporary phase=forward component=other");
  EXPECT_EQ(profile.labels(3), "device=cuda:0");
}

TEST(PprofExport, HoldsStacksWithAllFourValues) {
  const Profile profile(exported(small_run().store("/tmp/run.tide"), "pprof"));
  EXPECT_EQ(profile.text(0), "");
  EXPECT_THAT(profile.sample_types(), ::testing::ElementsAre("alloc_objects count", "alloc_space bytes",
                                                             "inuse_objects count", "inuse_space bytes"));
  EXPECT_THAT(profile.samples(),
              ::testing::UnorderedElementsAre("cuda:0: step@/w/train.py:5 main@/w/train.py:9 = 2 600 1 500",
                                              "cuda:0: forward@/w/model.py:3 main@/w/train.py:9 = 1 300 1 300",
                                              "cuda:0: (not recorded) = 0 0 0 24", "cpu: (no stack) = 1 64 1 64"));
  EXPECT_THAT(profile.mappings(), ::testing::ElementsAre("run.tide"));
  EXPECT_EQ(profile.text(profile.message().number(14)), "inuse_space");
  EXPECT_EQ(profile.message().number(10), 40U);
}

TEST(PprofExport, SaysWhichMomentOfEachDevice) {
  const Profile profile(exported(small_run().store(), "pprof"));
  EXPECT_THAT(profile.comments(),
              ::testing::IsSupersetOf({"inuse of cuda:0: 824 B at 30 ns", "inuse of cpu: 64 B at 20 ns"}));
}

TEST(PprofExport, LooksAtTheMomentAskedFor) {
  const Profile profile(exported(small_run().store(), "pprof", {"cuda:0", *parse_moment("end")}));
  EXPECT_THAT(profile.samples(),
              ::testing::UnorderedElementsAre("cuda:0: step@/w/train.py:5 main@/w/train.py:9 = 2 600 1 500",
                                              "cuda:0: forward@/w/model.py:3 main@/w/train.py:9 = 1 300 0 0",
                                              "cuda:0: (not recorded) = 0 0 0 24"));
}

TEST(PprofExport, NativeCodeBelongsToItsFile) {
  Scenario scenario;
  scenario.allocate(1, "a", 8, kCpu,
                    scenario.stack({scenario.python("f", "f.py", 1), scenario.native("/nowhere/liba.so", 16)}));
  const Profile profile(exported(scenario.store("run.tide"), "pprof"));
  EXPECT_THAT(profile.mappings(), ::testing::ElementsAre("run.tide", "/nowhere/liba.so"));
  EXPECT_THAT(profile.samples(), ::testing::ElementsAre("cpu: liba.so+0x10 f@f.py:1 = 1 8 1 8"));
}

TEST(PprofExport, KnowsTheWallClockWhereTheRecordingDoes) {
  Scenario scenario = small_run();
  EXPECT_FALSE(Profile(exported(scenario.store(), "pprof")).message().numbers.contains(9));
  scenario.definitions.process.start_wall_ns = 1'700'000'000'000'000'000;
  EXPECT_EQ(Profile(exported(scenario.store(), "pprof")).message().number(9), 1'700'000'000'000'000'000U);
}

TEST(Gzip, PacksNothingAndMuch) {
  EXPECT_EQ(unpacked(gzip("")), "");
  std::string much;
  for (std::uint32_t number = 0; much.size() < 500'000; ++number) much += std::to_string(number * 2'654'435'761U);
  EXPECT_EQ(unpacked(gzip(much)), much);
}

}  // namespace
}  // namespace tidemark
