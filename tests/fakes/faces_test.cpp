// One machine watched by all interfaces at once, unmodified: the command, the Python class, the C++ class and the
// terminal program. Its driver is scripted, and this test is the recorder of a program that trains on it, in real time.
//
// On one GPU of 80 GiB, the used memory grows by half a gibibyte each second. Ten steps a second are marked, and in all
// but one of them the program takes more temporarily, between two samples, which only recordings contain. Fewer and
// higher peaks could not be distinguished from slowing growth, whenever one more of them is in the first half of the
// analyzed time than in the second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/locked_file.h"
#include "base/units.h"
#include "collect/recorder/live/live_recordings.h"
#include "collect/recorder/live/socket_folder.h"
#include "temporary_folder.h"
#include "trace/sink.h"
#include "unit/trace/trace_test_support.h"

namespace tidemark::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::DoubleNear;

constexpr const char* kUuid = "GPU-fac35";
constexpr std::uint64_t kUsedBytes = 20 * kGiB;
constexpr std::uint64_t kGrowthBytes = kGiB / 2;  // a second
constexpr Device kGpu = {DeviceType::cuda, 0};
constexpr std::uint64_t kSpikeBytes = 25 * kGiB;
constexpr std::uint64_t kFirstAddress = 1 << 12;
constexpr std::uint64_t kSpikeAddress = 1ULL << 48;
constexpr auto kStep = 100ms;

// Records a simulated program, with its steps in real time.
class Recorder {
 public:
  explicit Recorder(std::string path) : path_(std::move(path)) {
    auto sockets = SocketFolder::create();
    sockets_.emplace(std::move(sockets.value()));
    clients_.emplace(sockets_->listen_to_readers().value());
    file_ = create_locked_file(path_, true).value();
    writer_ = write_to(&bytes_);
    SampledDevice device;
    device.vendor = "nvidia";
    device.uuid = kUuid;
    device.cuda_index = 0;
    writer_->sample(device);
    thread_ = std::thread([this] { run(); });
  }
  ~Recorder() {
    go_on_ = false;
    thread_.join();
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Number of connected readers.
  [[nodiscard]] std::size_t readers() const { return readers_; }
  /// The peak in each step, which samples do not contain.
  [[nodiscard]] std::vector<double> peaks() {
    const std::lock_guard lock(mutex_);
    return peaks_;
  }

 private:
  void run() {
    for (std::uint64_t step = 0; go_on_; ++step) {
      const std::uint64_t time = now_ns();
      writer_->mark({Mark::Kind::point, time, writer_->string("step"), {}});
      change(time + 1, kFirstAddress + step * kGrowthBytes, kGrowthBytes / 10);
      if (step % 10 != 1) {  // this soon after a sample, it is unknown whether the sample includes it
        change(time + 2, kSpikeAddress, kSpikeBytes);
        add_peak(used_at_sample_ + allocated_ - allocated_at_sample_);
        release(time + 3, kSpikeAddress, kSpikeBytes);
      }
      if (step % 10 == 0) sample(time + 4);
      write();
      clients_->welcome();
      readers_ = clients_->count();
      const LiveRecording recording{::getpid(), path_, {}, "python train.py", 5, 5};
      clients_->send({&recording, 1});
      std::this_thread::sleep_until(began_ + (step + 1) * kStep);
    }
  }
  [[nodiscard]] std::uint64_t now_ns() const {
    return static_cast<std::uint64_t>((std::chrono::steady_clock::now() - began_) / 1ns);
  }
  void add_peak(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    peaks_.push_back(static_cast<double>(bytes));
  }
  void change(std::uint64_t time, std::uint64_t address, std::uint64_t bytes) {
    allocated_ += bytes;
    add(allocate(time, address, bytes, kGpu));
  }
  void release(std::uint64_t time, std::uint64_t address, std::uint64_t bytes) {
    allocated_ -= bytes;
    add(free_at(time, address, kGpu));
  }
  void add(Event event) {
    event.has_totals = true;
    event.total_allocated = event.total_reserved = allocated_;
    EXPECT_TRUE(writer_->event(event).ok());
  }
  void sample(std::uint64_t time) {
    used_at_sample_ = kUsedBytes + allocated_;
    allocated_at_sample_ = allocated_;
    DeviceSample sample;
    sample.time_ns = time + 10'000'000;  // not at the same time as the allocation before
    sample.device = SampledDeviceId{0};
    sample.used_bytes = used_at_sample_;
    writer_->sample(sample);
  }
  void write() {
    EXPECT_TRUE(writer_->flush().ok());
    EXPECT_EQ(::write(file_.get(), bytes_.data() + written_, bytes_.size() - written_),
              static_cast<::ssize_t>(bytes_.size() - written_));
    written_ = bytes_.size();
  }

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::string path_;
  std::optional<SocketFolder> sockets_;
  std::optional<LiveClients> clients_;
  ScopedFd file_;
  Bytes bytes_;
  std::size_t written_ = 0;
  std::unique_ptr<TraceWriter> writer_;
  std::uint64_t allocated_ = 0;
  std::uint64_t allocated_at_sample_ = 0;
  std::uint64_t used_at_sample_ = 0;
  std::mutex mutex_;
  std::vector<double> peaks_;
  std::atomic<std::size_t> readers_ = 0;
  std::atomic<bool> go_on_ = true;
  std::thread thread_;
};

// A running interface, which writes its report when it reads a line from stdin.
class Face {
 public:
  Face(const std::string& command, std::string report) : report_(std::move(report)) {
    input_ = ::popen(command.c_str(), "w");
    EXPECT_NE(input_, nullptr);
  }
  Face(const Face&) = delete;
  Face& operator=(const Face&) = delete;
  ~Face() {
    if (input_ != nullptr) ::pclose(input_);
  }

  json report(const std::string& line) {
    std::fputs((line + "\n").c_str(), input_);
    EXPECT_EQ(::pclose(std::exchange(input_, nullptr)), 0);
    std::ifstream file(report_);
    return json::parse(file, nullptr, false);
  }

 private:
  FILE* input_ = nullptr;
  std::string report_;
};

TEST(Faces, SeeTheSame) {
  const TemporaryFolder folder;
  const json script = {{"driver", "580.1"},
                       {"cuda", 13000},
                       {"devices",
                        {{{"name", "Fake H100"},
                          {"uuid", kUuid},
                          {"bus", 0x65},
                          {"memory", {{"total", 80 * kGiB}, {"used", kUsedBytes}}},
                          {"grows", kGrowthBytes}}}}};
  ::setenv("TIDEMARK_RUNTIME_DIR", folder.path().c_str(), 1);
  ::setenv("FAKES_NVML", folder.write("nvml.json", script.dump()).c_str(), 1);
  ::setenv("LD_LIBRARY_PATH", FAKES_NVML_FOLDER, 1);
  Recorder recorder(folder.at("run.tide"));
  const auto at = [&](const char* name) { return folder.at(name); };
  // The command ends at a signal, for which `read` waits.
  Face command(std::string("'" TIDEMARK_PROGRAM "' oom --interval 0.1 --duration 600 --output ") + at("command.json") +
                   " > /dev/null & read line; kill -TERM $!; wait $!",
               at("command.json"));
  Face terminal("'" TIDEMARK_PROGRAM "' interactive --interval 0.1 > /dev/null", at("terminal.json"));
  Face library("'" FAKES_DETECTOR "' " + at("library.json") + " > /dev/null", at("library.json"));
  std::unique_ptr<Face> python;
  if (*FAKES_PYTHON != '\0') {
    folder.write("detector.py",
                 "import sys, tidemark\n"
                 "with tidemark.OOMDetector(0.1) as detector:\n"
                 "    sys.stdin.readline()\n"
                 "    detector.generate_report(sys.argv[1])\n");
    python = std::make_unique<Face>(
        "PYTHONPATH='" FAKES_PACKAGE "' '" FAKES_PYTHON "' " + at("detector.py") + " " + at("python.json"),
        at("python.json"));
  }
  // On a busy machine some of them take long to start.
  for (int tries = 0; recorder.readers() < (python ? 4U : 3U); ++tries) {
    ASSERT_LT(tries, 1200) << recorder.readers() << " follow";
    std::this_thread::sleep_for(100ms);
  }
  std::this_thread::sleep_for(40s);
  struct Made {
    std::string name;
    json report;
    std::vector<double> before;  // peaks
  };
  std::vector<Made> all;
  const auto make = [&](const std::string& name, Face& face, const std::string& line) {
    const std::vector<double> before = recorder.peaks();
    all.push_back({name, face.report(line), before});
  };
  make("terminal", terminal, "save " + at("terminal.json"));
  make("command", command, "end");
  make("library", library, "end");
  if (python) make("python", *python, "end");
  const std::vector<double> peaks = recorder.peaks();
  for (const Made& made : all) {
    SCOPED_TRACE(made.name);
    ASSERT_TRUE(made.report.is_object());
    const json& device = made.report["devices"]["0"];
    const json& risk = device["risk_assessment"];
    EXPECT_EQ(device["peak_is"], "recorded");
    // One of the true ones, and at most some seconds old. If this test is delayed, a step or two may be on the other
    // side of a sample.
    const auto peak = device["peak_memory"].get<double>();
    EXPECT_THAT(peaks, Contains(DoubleNear(peak, 64.0 * kMiB)));
    ASSERT_GE(made.before.size(), 60U);
    EXPECT_GE(peak, made.before[made.before.size() - 60] - 64.0 * kMiB);
    EXPECT_THAT(risk["risk_level"].get<std::string>(), AnyOf("medium", "high", "critical"));
    ASSERT_TRUE(risk["steps_to_limit"].is_object()) << risk.dump(2);
    const double seconds = risk["seconds_to_limit"]["expected"];
    const double steps = risk["steps_to_limit"]["expected"];
    EXPECT_NEAR(steps / seconds, 10, 2.5);
  }
}

}  // namespace
}  // namespace tidemark::testing
