#include "monitor/state_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kSentEveryNs = 1'000'000'000;

// The same bytes are the same state, but for what is not sent.
std::string bytes_of(const MonitorSnapshot& state) {
  return StateEncoder().full(state);
}

RiskAssessment risk_at(std::uint64_t second, double scale) {
  const auto seconds = static_cast<double>(second);
  RiskAssessment risk;
  risk.level = second % 50 > 40 ? RiskLevel::high : RiskLevel::low;
  risk.pattern = second < 36 ? UsagePattern::unknown : UsagePattern::growth;
  risk.confidence = 0.9;
  risk.used_bytes = 20 * kGiB + second * kMiB;
  risk.used_percent = 25 + seconds * scale / 1000;
  risk.growth_bytes_per_second = 1e6 * scale + seconds;
  risk.growth_error_bytes_per_second = 1e4 * scale;
  risk.growth_seconds = seconds;
  risk.seconds_to_limit = Interval{4000 / scale - seconds, 3900 / scale - seconds, 4100 / scale - seconds};
  if (second % 3 > 0) risk.steps_to_limit = Interval{1e4 - seconds, 9e3 - seconds, {}};
  risk.sample_count = second;
  risk.span_seconds = seconds;
  return risk;
}

// A machine that trains: as many GPUs as recorded processes.
class TrainingMachine {
 public:
  explicit TrainingMachine(std::size_t gpus) {
    MachineState& state = snapshot_.state;
    state.began_wall_ns = 1'790'000'000'000'000'000;
    state.devices_known = true;
    for (std::size_t n = 0; n < gpus; ++n) {
      WatchedDevice& device = state.devices.emplace_back();
      device.key = std::to_string(n);
      state.all_keys.push_back(device.key);
      device.info.vendor = "nvidia";
      device.info.name = "NVIDIA H100 80GB HBM3";
      device.info.uuid = "GPU-9f0c1a52-7a3e-4c1b-8f6e-0000000000" + std::to_string(10 + n);
      device.info.bus_id = "0000:65:00." + std::to_string(n);
      device.info.index = static_cast<std::uint32_t>(n);
      device.info.total_bytes = 80 * kGiB;
      WatchedProcess& process = state.processes.emplace_back();
      process.pid = 4000 + static_cast<std::int64_t>(n);
      process.kind = ProcessKind::job;
      process.name = "python train.py";
      process.devices.emplace_back().device = n;
      RecordedProcess& recorded = snapshot_.recorded.emplace_back();
      recorded.recording = {static_cast<pid_t>(4000 + n), "/data/run.rank" + std::to_string(n) + ".tide",
                            static_cast<std::int32_t>(n), "python train.py",
                            state.began_wall_ns,          5};
      recorded.caught_up = true;
      RecordedDevice& on = recorded.devices.emplace_back();
      on.device = {DeviceType::cuda, static_cast<std::int8_t>(n)};
      on.key = device.key;
    }
  }

  void pass_second() {
    const std::uint64_t second = ++second_;
    MachineState& state = snapshot_.state;
    state.now_ns = second * kSentEveryNs + jitter();
    state.now_wall_ns = state.began_wall_ns + state.now_ns;
    state.latest_reading_ns = state.now_ns - jitter();
    state.steps.clear();
    for (std::size_t n = 0; n < state.devices.size(); ++n) {
      WatchedDevice& device = state.devices[n];
      const std::uint64_t used = 20 * kGiB + second * 2 * kMiB + jitter() / 8 * 512;
      device.sampled_at_ns = state.now_ns - jitter();
      device.latest.used_bytes = used;
      device.latest.utilization_percent = static_cast<std::uint32_t>(90 + jitter() % 10);
      device.latest.power_milliwatts = static_cast<std::uint32_t>(600'000 + jitter() % 50'000);
      device.used.add(*device.sampled_at_ns, used);
      device.used.add_peak(used + kGiB);
      device.used_distribution.add(static_cast<double>(used));
      device.used_percent.add(static_cast<double>(used) / static_cast<double>(80 * kGiB) * 100);
      device.utilization_percent.add(95);
      device.risk = risk_at(second, 1.0 + static_cast<double>(n));
      device.assessed_at_ns = device.sampled_at_ns;
      WatchedProcess& process = state.processes[n];
      process.last_seen_ns = state.now_ns;
      ProcessOnDevice& on = process.devices[0];
      on.held = true;
      on.bytes = used - kGiB;
      on.used.add(state.now_ns, *on.bytes);
      on.risk = ProcessRisk{risk_at(second, 2.0 + static_cast<double>(n)), 80 * kGiB};
      process.rss_bytes = 8 * kGiB + jitter() / 4096 * 4096;
      process.rss.add(state.now_ns, *process.rss_bytes);
      RecordedProcess& recorded = snapshot_.recorded[n];
      recorded.steps = second * 4;
      RecordedDevice& held = recorded.devices[0];
      held.allocated_bytes = used - 2 * kGiB;
      held.reserved_bytes = used - kGiB;
      held.allocated.add(state.now_ns, held.allocated_bytes, held.allocated_bytes + kGiB);
      held.reserved.add(state.now_ns, *held.reserved_bytes);
      held.unused_share.add(0.05);
      state.steps.push_back({process.pid, device.key, *held.reserved_bytes, *recorded.steps});
    }
    state.host.memory = {512 * kGiB, 400 * kGiB - jitter() / 4096 * 4096};
    state.host.used.add(state.now_ns, *state.host.used_bytes());
    state.host.risk = risk_at(second, 0.5);
    state.host.assessed_at_ns = state.now_ns;
  }

  [[nodiscard]] MonitorSnapshot& snapshot() { return snapshot_; }

 private:
  std::uint64_t jitter() { return (random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL) >> 44; }

  MonitorSnapshot snapshot_;
  std::uint64_t second_ = 0;
  std::uint64_t random_ = 1;
};

TEST(StateCodec, RestoresWhatWasSent) {
  TrainingMachine machine(2);
  StateEncoder encoder;
  StateDecoder decoder;
  EXPECT_FALSE(decoder.has_state());
  for (int second = 0; second < 200; ++second) {
    machine.pass_second();
    const auto taken = decoder.take(encoder.changes(machine.snapshot()));
    ASSERT_TRUE(taken) << second << ": " << taken.error().message;
    ASSERT_EQ(bytes_of(decoder.state()), bytes_of(machine.snapshot())) << second;
  }
  const MonitorSnapshot& state = decoder.state();
  ASSERT_EQ(state.state.devices.size(), 2U);
  const WatchedDevice& device = state.state.devices[1];
  const WatchedDevice& original = machine.snapshot().state.devices[1];
  EXPECT_EQ(device.info, original.info);
  EXPECT_EQ(device.used.sample_count(), 200U);
  EXPECT_EQ(device.used.peak_bytes(), original.used.peak_bytes());
  EXPECT_EQ(device.used.mean_bytes(), original.used.mean_bytes());
  EXPECT_EQ(device.used.last_sample(), original.used.last_sample());
  EXPECT_LE(device.used.points().size(), kSentPoints);
  EXPECT_EQ(device.used_distribution.quantile(0.9), original.used_distribution.quantile(0.9));
  EXPECT_EQ(device.risk.level, original.risk.level);
  EXPECT_NEAR(device.risk.seconds_to_limit->expected, original.risk.seconds_to_limit->expected, 0.01);
  EXPECT_EQ(state.recorded[1].steps, 800U);
  EXPECT_EQ(state.recorded[1].recording, machine.snapshot().recorded[1].recording);
  EXPECT_EQ(state.state.steps[1].steps, 800U);
}

// A history of fewer points is what it would have become from the beginning.
TEST(StateCodec, CondensedHistoriesAreThoseOfFewerPoints) {
  WatchedUsage many(1024);
  WatchedUsage few(kSentPoints);
  for (std::uint64_t n = 0; n < 5000; ++n) {
    many.add(n, n * 7919 % 1000);
    few.add(n, n * 7919 % 1000);
    const WatchedUsage condensed = many.condensed(kSentPoints);
    ASSERT_TRUE(std::ranges::equal(condensed.points(), few.points())) << n;
    ASSERT_EQ(condensed.newest().size(), 1U);
  }
}

TEST(StateCodec, IsSmall) {
  TrainingMachine machine(8);
  StateEncoder encoder;
  for (int second = 0; second < 3600; ++second) machine.pass_second();
  const std::size_t full = encoder.full(machine.snapshot()).size();
  std::size_t most = 0;
  std::size_t sum = 0;
  constexpr int kSeconds = 600;
  for (int second = 0; second < kSeconds; ++second) {
    machine.pass_second();
    const std::size_t size = encoder.changes(machine.snapshot()).size();
    most = std::max(most, size);
    sum += size;
  }
  const std::size_t mean = sum / kSeconds;
  RecordProperty("full_bytes", std::to_string(full));
  RecordProperty("changes_bytes", std::to_string(mean));
  EXPECT_LT(full, 64U << 10);
  EXPECT_LT(mean, 3000U);
  EXPECT_LT(most, 2 * mean) << "no message is much longer than others";
  std::printf("8 GPUs, 8 recorded processes: full %zu bytes, changes %zu on average, %zu at most\n", full, mean, most);
}

TEST(StateCodec, ADeviceLessOrAProcessMoreIsAChange) {
  TrainingMachine machine(3);
  StateEncoder encoder;
  StateDecoder decoder;
  machine.pass_second();
  ASSERT_TRUE(decoder.take(encoder.changes(machine.snapshot())));
  MonitorSnapshot fewer = machine.snapshot();
  fewer.state.processes.erase(fewer.state.processes.begin());
  fewer.state.processes.back().risk = ProcessRisk{risk_at(2, 1), 5};
  fewer.recorded.erase(fewer.recorded.begin());
  fewer.recorded[0].killed.emplace_back().process.name = "python";
  fewer.recorded[0].growths.emplace_back().second.sources.emplace_back().source = 3;
  fewer.recorded[0].owners.emplace_back().categories[0] = 7;
  fewer.state.devices[0].processes = std::vector<SampledProcess>(2);
  ASSERT_TRUE(decoder.take(encoder.changes(fewer)));
  EXPECT_EQ(bytes_of(decoder.state()), bytes_of(fewer));
  // Who comes later gets all of it.
  StateDecoder later;
  EXPECT_FALSE(later.take(encoder.changes(fewer)));
  ASSERT_TRUE(later.take(encoder.full(fewer)));
  EXPECT_EQ(bytes_of(later.state()), bytes_of(fewer));
}

TEST(StateCodec, AMissedMessageIsFound) {
  TrainingMachine machine(1);
  StateEncoder encoder;
  StateDecoder decoder;
  machine.pass_second();
  ASSERT_TRUE(decoder.take(encoder.changes(machine.snapshot())));
  machine.pass_second();
  const std::string known = bytes_of(decoder.state());
  (void)encoder.changes(machine.snapshot());
  machine.pass_second();
  const auto taken = decoder.take(encoder.changes(machine.snapshot()));
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("ask for a full one"), std::string::npos);
  EXPECT_EQ(bytes_of(decoder.state()), known) << "what is known stays";
  ASSERT_TRUE(decoder.take(encoder.full(machine.snapshot())));
  EXPECT_EQ(bytes_of(decoder.state()), bytes_of(machine.snapshot()));
}

// Any order of what can happen to a machine, a few things between two messages.
TEST(StateCodec, RestoresAnyChange) {
  const bool right = rc::check([](const std::vector<std::uint32_t>& changes) {
    TrainingMachine machine(2);
    StateEncoder encoder;
    StateDecoder decoder;
    for (const std::uint32_t change : changes) {
      MachineState& state = machine.snapshot().state;
      const std::size_t which = change / 16 % 2;
      switch (change % 9) {
        case 0:
          machine.snapshot().recorded.emplace_back().problem = std::string(change % 50, '\n');
          machine.snapshot().recorded.back().devices.emplace_back().allocated.add(state.now_ns, change);
          break;
        case 1:
          state.processes.back().ended = !state.processes.back().ended;
          break;
        case 2:
          state.devices[which].lost = change % 2 == 0 ? "gone" : "";
          break;
        case 3:
          for (std::uint32_t n = 0; n < change % 300; ++n) machine.pass_second();
          break;
        case 4:
          if (!state.devices[which].used.empty()) state.devices[which].used.add_peak(kGiB * change);
          break;
        case 5:
          state.processes.emplace_back().pid = -static_cast<std::int64_t>(change);
          state.processes.back().first_seen_ns = change;
          break;
        case 6:
          if (machine.snapshot().recorded.size() > 2)
            machine.snapshot().recorded.erase(machine.snapshot().recorded.end() - 1);
          break;
        case 7:
          state.devices[which].used_distribution.add(1.0 / (1 + change));
          break;
        default:
          machine.pass_second();
      }
      const bool full = change % 31 == 0;
      const std::string message = full ? encoder.full(machine.snapshot()) : encoder.changes(machine.snapshot());
      RC_ASSERT(decoder.take(message).ok());
      RC_ASSERT(bytes_of(decoder.state()) == bytes_of(machine.snapshot()));
      RC_ASSERT(bytes_of(condensed(machine.snapshot())) == bytes_of(machine.snapshot()));
    }
  });
  EXPECT_TRUE(right);
}

void sign(std::string& message) {
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(message.data(), message.size() - 4)));
  for (std::size_t byte = 0; byte < 4; ++byte)
    message[message.size() - 4 + byte] = static_cast<char>(sum >> (8 * byte));
}

TEST(StateCodec, DamageIsFound) {
  TrainingMachine machine(1);
  for (int second = 0; second < 50; ++second) machine.pass_second();
  const std::string message = StateEncoder().full(machine.snapshot());
  EXPECT_FALSE(StateDecoder().take(""));
  for (std::size_t size = 0; size < message.size(); size += 7)
    EXPECT_FALSE(StateDecoder().take(message.substr(0, size)));
  for (std::size_t at = 0; at < message.size(); ++at) {
    std::string damaged = message;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(StateDecoder().take(damaged)) << at;
  }
  std::string other = message;
  other[0] = 99;
  sign(other);
  EXPECT_NE(StateDecoder().take(other).error().message.find("version"), std::string::npos);
}

// Messages that were made to look right: an error or some state, never more.
TEST(StateCodec, NonsenseIsBounded) {
  TrainingMachine machine(2);
  for (int second = 0; second < 40; ++second) machine.pass_second();
  StateEncoder encoder;
  const std::string full = encoder.full(machine.snapshot());
  machine.pass_second();
  const std::string changes = encoder.changes(machine.snapshot());
  const bool right = rc::check([&](std::uint32_t where, const std::vector<std::uint8_t>& bytes, bool of_changes) {
    StateDecoder decoder;
    if (of_changes) RC_ASSERT(decoder.take(full).ok());
    std::string damaged = of_changes ? changes : full;
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      damaged[1 + (where + n) % (damaged.size() - 5)] = static_cast<char>(bytes[n]);
    }
    sign(damaged);
    const auto taken = decoder.take(damaged);
    if (!taken) {
      RC_ASSERT(taken.error().message.find("state") != std::string::npos);
      return;
    }
    RC_ASSERT(decoder.take(StateEncoder().full(decoder.state())).ok());
  });
  EXPECT_TRUE(right);
}

}  // namespace
}  // namespace tidemark
