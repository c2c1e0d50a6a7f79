#include "monitor/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "monitor/monitor_thread.h"
#include "unit/monitor/scripted_machine.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kHalf = 60;  // seconds
constexpr std::uint64_t kAll = 120;

// The reports of an interface, at two moments.
struct Said {
  std::string profile;
  std::string risks;
  std::string changes;
  std::string verdicts;
  std::string fragmentation;

  void add(const ProfileReport& report) { profile += text_of(report.state) + text_of(report.recorded); }
  void add(const OomReport& report) {
    risks += text_of(report.state) + text_of(report.recorded);
    changes.clear();
    for (const RiskChange& change : report.changes) changes += text_of(change);
  }
  void add(const LeakReport& report) {
    for (const MemoryGrowth& growth : report.growths) {
      verdicts +=
          fmt::format("{} {} is {}: {} bytes/min, {} bytes/step\n", name_of(growth.memory), growth.device,
                      name_of(growth.verdict), growth.bytes_per_minute(),
                      growth.growth && growth.growth->bytes_per_step ? growth.growth->bytes_per_step->value : 0);
    }
    for (const RecordedLeaks& leaks : report.by_stack) {
      for (const GrowingSource& source : leaks.sources) {
        verdicts += fmt::format("stack {} holds {}\n", source.stack.frames.at(0).function, source.growth.held_bytes);
      }
    }
  }
  void add(const FragmentReport& report) {
    fragmentation += fmt::format("{} {}\n", report.unused_share("0").value_or(-1), report.of_recorded.size());
  }
};

// A command drives the engine itself.
template <typename Make>
void run_command(EngineOptions options, const Make& make) {
  ScriptedMachine machine;
  machine.add_to(options);
  MonitorEngine engine(options);
  engine.start();
  for (const std::uint64_t second : {kHalf, kAll}) {
    machine.allow_until(second);
    do {
      (void)engine.tick();
    } while (!machine.is_over());
    make(engine);
  }
}

// The monitors of Python and C++ run it on a thread, from which they request reports.
template <typename Make>
void run_thread(EngineOptions options, const Make& make) {
  ScriptedMachine machine;
  machine.add_to(options);
  MonitorThread monitor(options);
  monitor.start();
  for (const std::uint64_t second : {kHalf, kAll}) {
    machine.allow_until(second);
    while (!machine.is_over()) std::this_thread::sleep_for(1ms);
    make(monitor);
  }
}

EngineOptions leak_options(const SlidingWindow::Limits& window) {
  EngineOptions options;
  options.leak_bytes_per_minute = 5.0 * kMiB;
  options.tracking = true;
  options.window = window;
  return options;
}

Said said_by_commands() {
  Said said;
  run_command({}, [&](MonitorEngine& engine) { said.add(engine.profile()); });
  run_command({}, [&](MonitorEngine& engine) { said.add(engine.oom()); });
  const SlidingWindow::Limits window = {.length = 120s};
  run_command(leak_options(window), [&](MonitorEngine& engine) { said.add(engine.leak()); });
  EngineOptions fragment;
  fragment.window = window;
  run_command(fragment, [&](MonitorEngine& engine) { said.add(engine.fragment()); });
  return said;
}

Said said_by_threads() {
  Said said;
  run_thread({}, [&](MonitorThread& monitor) { said.add(*monitor.profile()); });
  run_thread({}, [&](MonitorThread& monitor) { said.add(*monitor.oom()); });
  run_thread(leak_options(kReportWindow), [&](MonitorThread& monitor) { said.add(*monitor.leak()); });
  EngineOptions fragment;
  fragment.window = kReportWindow;
  run_thread(fragment, [&](MonitorThread& monitor) { said.add(*monitor.fragment()); });
  return said;
}

TEST(MonitorEngine, CommandsAndMonitorsInProgramsSayTheSame) {
  const Said commands = said_by_commands();
  const Said threads = said_by_threads();
  EXPECT_EQ(commands.profile, threads.profile);
  EXPECT_EQ(commands.risks, commands.profile);
  EXPECT_EQ(threads.risks, commands.profile);
  EXPECT_EQ(commands.changes, threads.changes);
  EXPECT_EQ(commands.verdicts, threads.verdicts);
  EXPECT_EQ(commands.fragmentation, threads.fragmentation);
  EXPECT_THAT(commands.changes, HasSubstr("0 from low to"));
  EXPECT_THAT(commands.verdicts, HasSubstr("allocated 0 is growing"));
  EXPECT_THAT(commands.verdicts, HasSubstr("stack remember holds"));
}

// The script's events, as seen by the engine.
TEST(MonitorEngine, ForecastsInStepsAndSeesPeaksBetweenReadings) {
  ScriptedMachine machine;
  MonitorEngine engine(machine.options());
  engine.start();
  machine.allow_until(kAll);
  do {
    (void)engine.tick();
  } while (!machine.is_over());
  const ProfileReport report = engine.profile();
  ASSERT_EQ(report.state.devices.size(), 1U);
  const WatchedDevice& device = report.state.devices[0];
  EXPECT_FALSE(device.used.peak_is_sampled());
  // The latest recorded spike, of the last second or the one before.
  EXPECT_NEAR(static_cast<double>(device.used.peak_bytes()),
              static_cast<double>(device.used.last_bytes() + ScriptedMachine::kSpikeBytes), 0.4 * kGiB);
  ASSERT_TRUE(device.risk.seconds_to_limit.has_value());
  ASSERT_TRUE(device.risk.steps_to_limit.has_value());
  const double steps_per_second = device.risk.steps_to_limit->expected / device.risk.seconds_to_limit->expected;
  EXPECT_NEAR(steps_per_second, ScriptedMachine::kSteps, 0.5);
  ASSERT_EQ(report.recorded.size(), 1U);
  EXPECT_EQ(report.recorded[0].steps, kAll * ScriptedMachine::kSteps);
}

TEST(MonitorEngine, ReturnsEvents) {
  ScriptedMachine machine;
  MonitorEngine engine(machine.options());
  std::vector<MonitorEventKind> kinds;
  engine.start();
  machine.allow_until(kAll);
  do {
    for (const MonitorEvent& event : engine.tick()) {
      if (event.kind != MonitorEventKind::risk_changed) kinds.push_back(event.kind);
      EXPECT_EQ(event.kind == MonitorEventKind::risk_changed, event.risk.has_value());
      if (event.kind != MonitorEventKind::recording_found) continue;
      ASSERT_TRUE(event.recording.has_value());
      EXPECT_EQ(event.recording->pid, ScriptedMachine::kPid);
    }
  } while (!machine.is_over());
  EXPECT_THAT(kinds, ElementsAre(MonitorEventKind::first_readings, MonitorEventKind::recording_found));
  EXPECT_EQ(engine.end(), WatchEnd::not_yet);
  const auto ending = engine.finish();
  EXPECT_NE(ending, nullptr);
  EXPECT_TRUE(engine.tick().empty()) << "it has ended";
  EXPECT_EQ(engine.profile().state.devices.size(), 1U) << "what was seen stays";
}

TEST(MonitorEngine, InvalidOptionsAreRefused) {
  EngineOptions options;
  EXPECT_TRUE(check(options));
  options.machine.interval = 1ms;
  EXPECT_EQ(check(options, {.interval = "--interval"}).error().message, "--interval 0.001: from 0.01 to 3600 seconds");
  options.machine.interval = 1s;
  options.machine.forecast.threshold_percent = 101;
  EXPECT_EQ(check(options).error().message, "threshold_percent 101: percent, from 0 to 100");
  options.machine.forecast.threshold_percent = 85;
  options.leak_bytes_per_minute = -1.0 * kMiB;
  EXPECT_EQ(check(options).error().message, "threshold_mb_per_minute -1: MB per minute, 0 or more");
  EXPECT_FALSE(sampling_interval(std::numeric_limits<double>::quiet_NaN(), "interval"));
  EXPECT_FALSE(sampling_interval(1e300, "interval"));
  EXPECT_EQ(*sampling_interval(0.25, "interval"), 250ms);
}

TEST(MonitorEngine, SaysWhichDeviceIsMissing) {
  MachineState state;
  EXPECT_FALSE(missing_device(state));
  state.missing_keys = {"7"};
  state.all_keys = {"0", "cpu"};
  EXPECT_EQ(missing_device(state)->message,
            "there is no device 7 here (there is 0, cpu); `tidemark devices` lists them");
  EXPECT_EQ(missing_device(state, "--devices")->message,
            "--devices 7: there is no such device here (there is 0, cpu); `tidemark devices` lists them");
}

}  // namespace
}  // namespace tidemark::testing
