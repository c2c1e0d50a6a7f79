// Samples written and read back; frames of samples that make no sense.
#include <gtest/gtest.h>

#include <limits>

#include "trace/sample_codec.h"
#include "trace_test_support.h"

namespace tidemark::testing {
namespace {

std::vector<SampleRecord> read_samples(const Bytes& bytes, Recording* recording = nullptr) {
  auto reader = TraceReader::from_memory(bytes, "memory");
  std::vector<SampleRecord> samples;
  if (reader.ok()) (*reader)->observe_samples([&](const SampleRecord& record) { samples.push_back(record); });
  Recording read = read_all(std::move(reader));
  if (recording != nullptr) *recording = std::move(read);
  return samples;
}

HostSample whole_host_sample() {
  HostSample sample{9, 1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t bytes = 10;
  for (auto* field : {&sample.anon_bytes, &sample.file_bytes, &sample.shmem_bytes, &sample.swap_bytes,
                      &sample.locked_bytes, &sample.pinned_bytes, &sample.job_anon_bytes, &sample.job_file_bytes,
                      &sample.job_shmem_bytes, &sample.job_swap_bytes, &sample.machine_available_bytes}) {
    *field = bytes++;
  }
  return sample;
}

HostPartsSample whole_parts() {
  HostPartsSample parts;
  parts.time_ns = 9;
  parts.cgroup = {1, 2, 3, 4, 5, 6, 7, 8};
  parts.cgroup_events = {9, 10, 11, 12, true};
  parts.machine = {13, 14, 15, 16, 17, 18, {}, 20};
  parts.machine_available_bytes = 21;
  parts.machine_oom_kills = 0;
  parts.processes.push_back(
      {30, -1, ProcessRole::data_worker, true, 0, 2, {31, 32, 33, 34, 35, 36, 37}, 38, 39, "python"});
  parts.processes.push_back({40, 30, ProcessRole::child, false, {}, {}, {}, {}, {}, ""});
  parts.other_processes = 5;
  parts.other_pages.rss_bytes = 50;
  return parts;
}

std::vector<SampleRecord> every_kind() {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max() - 1;
  return {SampledDevice{"nvidia", 2, 1, 0, "H100", "GPU-1", "0000:65:00.0", 80},
          SampledDevice{"", 0, {}, {}, "", "", "", {}},
          DeviceSample{5, {0}, 1, 2, 3, 4, 5},
          DeviceSample{6, {1}, 0, 0, 0, 0, 0},
          DeviceSample{kMax, {1}, {}, {}, {}, -273, {}},
          DeviceProcessesSample{
              7, {0}, {{1, ProcessKind::recorded, 5, "python"}, {-3, ProcessKind::other_namespace, {}, ""}}},
          DeviceProcessesSample{8, {1}, {}},
          HostSample{9, 1, 2, 3, 4, 5, 6, 7, 8},
          HostSample{9, kMax, 0, 0, 0, 0, 0, kMax, 0},
          HostSample{10, {}, {}, {}, {}, {}, {}, {}, {}},
          whole_host_sample(),
          whole_parts(),
          HostPartsSample{},
          KilledProcess{12, whole_parts().processes[0], KillEvidence::exit_signal, KillScope::cgroup, kMax, 0},
          KilledProcess{},
          SlowDriverCall{11, 3},
          SlowDriverCall{0, kMax}};
}

TEST(Samples, ComeBackAsTheyWere) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  for (const SampleRecord& record : every_kind()) writer->sample(record);
  EXPECT_TRUE(writer->finish({10, true}).ok());
  Recording recording;
  EXPECT_EQ(read_samples(bytes, &recording), every_kind());
  EXPECT_EQ(recording.error, "");
  EXPECT_TRUE(recording.definitions.losses.empty());
}

TEST(Samples, ASlowCallCoversTheTimeUntilItReturned) {
  constexpr SlowDriverCall kCall{100, 30};
  EXPECT_FALSE(kCall.covers(69));
  EXPECT_TRUE(kCall.covers(70));
  EXPECT_TRUE(kCall.covers(100));
  EXPECT_FALSE(kCall.covers(101));
  EXPECT_TRUE((SlowDriverCall{100, 500}.covers(0)));
}

TEST(Samples, InEveryFrameBetweenTheEvents) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  writer->sample(SampledDevice{});
  for (std::uint64_t n = 0; n < 5; ++n) {
    writer->sample(DeviceSample{n, {0}, n, {}, {}, {}, {}});
    Event event;
    event.address = n;
    if (n % 2 == 0) {
      EXPECT_TRUE(writer->event(event).ok());
    }
    EXPECT_TRUE(writer->flush().ok());
  }
  EXPECT_TRUE(writer->finish({10, true}).ok());
  Recording recording;
  const std::vector<SampleRecord> samples = read_samples(bytes, &recording);
  EXPECT_EQ(recording.events.size(), 3U);
  ASSERT_EQ(samples.size(), 6U);
  for (std::uint64_t n = 0; n < 5; ++n) EXPECT_EQ(std::get<DeviceSample>(samples[n + 1]).used_bytes, n);
}

TEST(Samples, AreCountedBeforeTheyAreWritten) {
  Bytes bytes;
  const auto writer = write_to(&bytes);
  writer->sample(HostSample{});
  const std::uint64_t pending = writer->bytes_pending();
  const std::uint64_t before = writer->bytes_written();
  EXPECT_TRUE(writer->flush().ok());
  EXPECT_GE(before + pending, writer->bytes_written());
  EXPECT_GT(pending, 0U);
}

/// Decodes a payload of one record; returns the text of the error, empty for none.
std::string decode(std::vector<std::uint8_t> payload, std::size_t* records = nullptr) {
  const std::size_t size = payload.size();
  payload.resize(size + 16);
  std::size_t count = 0;
  const Result<void> decoded =
      SampleDecoder().decode(std::span(payload).first(size), size, [&](const SampleRecord&) { ++count; });
  if (records != nullptr) *records = count;
  return decoded.ok() ? "" : decoded.error().message;
}

TEST(Samples, OfADeviceThatWasNeverDefined) {
  EXPECT_NE(decode({2, 7, 1, 0, 0, 0, 0, 0, 0}), "");
}

TEST(Samples, ThatAreCutShort) {
  EXPECT_NE(decode({4, 3, 1, 0, 0}), "") << "a host sample lacks fields";
  EXPECT_NE(decode({4, 100, 1, 0, 0}), "") << "longer than its frame";
  EXPECT_NE(decode({1, 8, 0, 0, 0, 0, 0, 0, 0, 9}), "") << "a text that is not there";
}

TEST(Samples, WithMoreUsersThanBytes) {
  // A device, then 2^62 users of it.
  EXPECT_NE(decode({1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 3, 11, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40}),
            "");
}

TEST(Samples, OfLaterVersions) {
  std::size_t records = 0;
  EXPECT_EQ(decode({77, 2, 1, 2, 5, 3, 1, 0, 99}, &records), "");
  EXPECT_EQ(records, 1U) << "the unknown kind is passed over, and so is a field too many";
}

TEST(Samples, OfTheHostByAnEarlierVersionEndEarlier) {
  std::size_t records = 0;
  EXPECT_EQ(decode({4, 9, 1, 2, 0, 0, 0, 0, 0, 0, 0}, &records), "");
  EXPECT_EQ(records, 1U);
  EXPECT_NE(decode({4, 10, 1, 2, 0, 0, 0, 0, 0, 0, 0, 5}), "") << "but not in the middle of what this version added";
}

/// Time, 8 + 5 + 8 + 2 optionals, `processes`, then the following fields.
std::vector<std::uint8_t> parts_with(const std::vector<std::uint8_t>& processes) {
  std::vector<std::uint8_t> body(24, 0);
  body.insert(body.end(), processes.begin(), processes.end());
  body.insert(body.end(), 8, 0);
  std::vector<std::uint8_t> payload = {6, static_cast<std::uint8_t>(body.size())};
  payload.insert(payload.end(), body.begin(), body.end());
  return payload;
}

TEST(Samples, ProcessesOfTheHostMayHaveFieldsOfLaterVersions) {
  EXPECT_EQ(decode(parts_with({1, 17, 2, 1, 200, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})), "") << "and roles";
  EXPECT_EQ(decode(parts_with({1, 18, 2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99, 99})), "");
  EXPECT_NE(decode(parts_with({1, 3, 2, 1, 2})), "") << "cut short";
  EXPECT_NE(decode(parts_with({100})), "") << "not there";
}

TEST(Samples, ThatWouldFillTheMemory) {
  // 16 MiB of the smallest samples, declared as a few bytes in the file.
  std::vector<std::uint8_t> payload;
  while (payload.size() < (std::size_t{16} << 20)) payload.insert(payload.end(), {4, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  const std::size_t size = payload.size();
  payload.resize(size + 16);
  EXPECT_FALSE(SampleDecoder().decode(std::span(payload).first(size), 1000, {}).ok());
}

}  // namespace
}  // namespace tidemark::testing
