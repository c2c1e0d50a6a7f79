#include "monitor/state_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/units.h"
#include "unit/monitor/training_machine.h"

namespace tidemark {
namespace {

// Equal bytes mean equal states, except for values that are not sent.
std::string bytes_of(const MonitorSnapshot& state) {
  return StateEncoder().full(state);
}

TEST(StateCodec, RestoresSentState) {
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

// A history condensed to fewer points equals one that had that capacity from the beginning.
TEST(StateCodec, CondensedHistoriesEqualSmallerOnes) {
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
  // A decoder that joins later gets all of it.
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

// Any order of possible changes of a machine, a few between two messages.
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

// Messages with right checksums and wrong content: an error or some state, never more.
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
