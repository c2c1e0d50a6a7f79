// One machine, the same for every interface that watches it: a GPU whose readings are scripted second by second, and a
// program that trains on it, whose recording is written meanwhile. The program leaks 16 MiB in each of ten steps a
// second, and takes 3 GiB more in the middle of every second, which no reading shows.
//
// Time is the script's own: a second passes at each tick of the engine, so nothing depends on the load of the real
// machine.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/locked_file.h"
#include "base/units.h"
#include "collect/recorder/live/live_recordings.h"
#include "collect/recorder/live/socket_folder.h"
#include "monitor/engine.h"
#include "temporary_folder.h"
#include "trace/sink.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {

class ScriptedMachine {
 public:
  static constexpr pid_t kPid = 4242;
  static constexpr std::uint64_t kSecondNs = 1'000'000'000;
  static constexpr std::uint64_t kSteps = 10;  ///< a second
  static constexpr std::uint64_t kLeakedBytes = 16 * kMiB;
  static constexpr std::uint64_t kSpikeBytes = 3 * kGiB;
  static constexpr std::uint64_t kOtherBytes = 6 * kGiB;  ///< on the GPU, not the program's

  ScriptedMachine() {
    if (const char* place = std::getenv("TIDEMARK_RUNTIME_DIR")) usual_place_ = place;
    ::setenv("TIDEMARK_RUNTIME_DIR", folder_.path().c_str(), 1);
    auto sockets = SocketFolder::create();
    sockets_.emplace(std::move(sockets.value()));
    clients_.emplace(sockets_->listen_to_readers().value());
    file_ = create_locked_file(path(), true).value();
    writer_ = write_to(&bytes_);
    work_ = stack("forward");
    keep_ = stack("remember");
    SampledDevice device = gpu();
    device.cuda_index = 0;
    writer_->sample(device);
    write();
  }
  ~ScriptedMachine() {
    usual_place_ ? ::setenv("TIDEMARK_RUNTIME_DIR", usual_place_->c_str(), 1) : ::unsetenv("TIDEMARK_RUNTIME_DIR");
  }
  ScriptedMachine(const ScriptedMachine&) = delete;
  ScriptedMachine& operator=(const ScriptedMachine&) = delete;

  /// For one engine, which must not outlive this.
  [[nodiscard]] ScriptedReadings readings() {
    return {[this] { return collect(); }, [this] { return kStartTicks + second_ * kSecondNs; }};
  }
  [[nodiscard]] EngineOptions options() {
    EngineOptions options;
    add_to(options);
    return options;
  }
  /// Only this program: other recordings on the real machine are left out.
  void add_to(EngineOptions& options) {
    options.machine.interval = std::chrono::seconds(1);
    options.machine.choice.pid = kPid;
    options.machine.scripted = readings();
  }
  /// Lets time pass until then; the engine's ticks advance it. On any thread.
  void allow_until(std::uint64_t second) { allowed_ = second; }
  [[nodiscard]] bool is_over() const { return is_read_ && second_ == allowed_; }

 private:
  static constexpr std::uint64_t kStartTicks = 1'000 * kSecondNs;

  [[nodiscard]] std::string path() const { return folder_.at("run.tide"); }
  static DeviceInfo gpu() {
    DeviceInfo info;
    info.vendor = "nvidia";
    info.name = "Scripted H100";
    info.uuid = "GPU-5c111";
    info.total_bytes = 80 * kGiB;
    return info;
  }
  [[nodiscard]] std::uint64_t reserved() const { return 2 * kGiB + allocated_; }

  std::vector<Reading> collect() {
    if (!told_) {  // time begins when the recording is followed
      clients_->welcome();
      if (clients_->count() == 0) return {};
      const LiveRecording recording{kPid, path(), {}, "python train.py", 5, 5};
      clients_->send({&recording, 1});
      told_ = true;
      return {};
    }
    is_read_ = second_ == allowed_;  // everything before was handled by the previous tick
    if (is_read_) return {};
    std::vector<Reading> readings;
    if (second_ == 0) readings.push_back({0, DevicesFound{{gpu()}, {}}});
    record_second();
    ++second_;
    const std::uint64_t ticks = kStartTicks + second_ * kSecondNs;
    DeviceSample sample;
    sample.device = SampledDeviceId{0};
    sample.used_bytes = kOtherBytes + reserved();
    readings.push_back({ticks, sample});
    readings.push_back(
        {ticks, DeviceProcessesSample{0, SampledDeviceId{0}, {{kPid, ProcessKind::job, reserved(), "python"}}}});
    HostReading host;
    host.machine = {64 * kGiB, 32 * kGiB};
    readings.push_back({ticks, host});
    return readings;
  }

  void record_second() {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const std::uint64_t time = second_ * kSecondNs + (step * kSecondNs) / kSteps + 10'000'000;
      writer_->mark({Mark::Kind::point, time, writer_->string("step"), {}});
      change(allocate(time + 1, 0x1000, 8 * kMiB, kGpu), work_, 8 * kMiB);
      change(allocate(time + 2, 0x100000000 + kept_++ * kLeakedBytes, kLeakedBytes, kGpu), keep_, kLeakedBytes);
      change(free_at(time + 3, 0x1000, kGpu), {}, -8 * static_cast<std::int64_t>(kMiB));
      if (step != kSteps / 2) continue;
      const auto spike = static_cast<std::int64_t>(kSpikeBytes);
      change(allocate(time + 20'000'000, 0x2000, kSpikeBytes, kGpu), work_, spike);
      change(free_at(time + 30'000'000, 0x2000, kGpu), {}, -spike);
    }
    DeviceSample sample;
    sample.time_ns = second_ * kSecondNs + 990'000'000;
    sample.device = SampledDeviceId{0};
    sample.used_bytes = kOtherBytes + reserved();
    writer_->sample(sample);
    write();
  }
  void change(Event event, StackId stack, std::int64_t bytes) {
    event.stack = stack;
    allocated_ += static_cast<std::uint64_t>(bytes);
    event.has_totals = true;
    event.total_allocated = allocated_;
    event.total_reserved = reserved();
    EXPECT_TRUE(writer_->event(event).ok());
  }
  void write() {
    EXPECT_TRUE(writer_->flush().ok());
    EXPECT_EQ(::write(file_.get(), bytes_.data() + written_, bytes_.size() - written_),
              static_cast<::ssize_t>(bytes_.size() - written_));
    written_ = bytes_.size();
  }
  StackId stack(const std::string& function) {
    Location location;
    location.function = writer_->string(function);
    return writer_->stack({}, writer_->location(location));
  }

  static constexpr Device kGpu = {DeviceType::cuda, 0};
  std::optional<std::string> usual_place_;
  TemporaryFolder folder_;
  std::optional<SocketFolder> sockets_;
  std::optional<LiveClients> clients_;
  ScopedFd file_;
  Bytes bytes_;
  std::size_t written_ = 0;
  std::unique_ptr<TraceWriter> writer_;
  StackId work_;
  StackId keep_;
  std::uint64_t kept_ = 0;
  std::uint64_t allocated_ = 0;
  bool told_ = false;
  std::atomic<bool> is_read_ = false;
  std::atomic<std::uint64_t> second_ = 0;  // seconds that have passed
  std::atomic<std::uint64_t> allowed_ = 0;
};

/// All values of a forecast as text, so that a difference is visible.
inline std::string text_of(const RiskAssessment& risk) {
  const auto interval = [](const std::optional<Interval>& of) {
    if (!of) return std::string("n/a");
    return fmt::format("{} [{}, {}]", of->expected, of->earliest, of->latest.value_or(-1));
  };
  return fmt::format("{} {} at {}%, {} bytes/s, limit in {} s, {} steps, {} samples", name_of(risk.level),
                     name_of(risk.pattern), risk.used_percent.value_or(-1), risk.growth_bytes_per_second,
                     interval(risk.seconds_to_limit), interval(risk.steps_to_limit), risk.sample_count);
}

inline std::string text_of(const WatchedUsage& used) {
  if (used.empty()) return "n/a";
  return fmt::format("{} bytes, peak {} at {} ns{}", used.last_bytes(), used.peak_bytes(), used.peak_at_ns(),
                     used.peak_is_sampled() ? "" : " between samples");
}

/// The state of a machine as text: risks, peaks, and the time and steps to each limit.
inline std::string text_of(const MachineState& state) {
  std::string text = fmt::format("at {} ns\n", state.now_ns);
  for (const WatchedDevice& device : state.devices) {
    text += fmt::format("{}: {}; {}\n", device.key, text_of(device.used), text_of(device.risk));
  }
  for (const WatchedProcess& process : state.processes) {
    for (const ProcessOnDevice& on : process.devices) {
      text += fmt::format("{} on {}: {}; {}\n", process.pid, on.device, text_of(on.used),
                          on.risk ? text_of(on.risk->risk) : "n/a");
    }
  }
  text += fmt::format("host: {}\n", text_of(state.host.risk));
  for (const ProcessSteps& steps : state.steps) {
    text += fmt::format("{} has made {} steps on {}\n", steps.pid, steps.steps, steps.device);
  }
  return text;
}

inline std::string text_of(const std::vector<RecordedProcess>& recorded) {
  std::string text;
  for (const RecordedProcess& process : recorded) {
    for (const RecordedDevice& on : process.devices) {
      text += fmt::format("{} on {}: allocated {}; reserved {}; steps {}\n", process.recording.pid, on.key,
                          text_of(on.allocated), text_of(on.reserved), process.steps.value_or(0));
    }
  }
  return text;
}

inline std::string text_of(const RiskChange& change) {
  return fmt::format("{} ns: {} from {} to {}\n", change.time_ns, change.device, name_of(change.before),
                     text_of(change.now));
}

}  // namespace tidemark::testing
