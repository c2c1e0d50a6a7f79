#include "simulate/pytorch_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "base/units.h"
#include "launch/background_process.h"
#include "launch/environment.h"
#include "launch/passed_signals.h"
#include "plan/gpu_profiles.h"
#include "plan/phantom_run.h"

namespace tidemark {

extern const char kReplayScript[];  // replay.py

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Memory of each phantom GPU without a limit: expandable segments reserve more addresses than that for each stream and
// pool, and all of them have to fit together.
constexpr std::uint64_t kMinPlenty = 256 * kGiB;
constexpr std::uint64_t kMaxPlenty = 4096 * kGiB;
constexpr std::uint64_t kPlentyForPeak = 16;

// PyTorch rounds the product down; the excess over `limit` is less than any block.
double fraction_of(std::uint64_t limit, std::uint64_t memory) {
  return std::min(1.0, (static_cast<double>(limit) + 128) / static_cast<double>(memory));
}

PhantomOptions phantom_options(const Store& store, const Requests& requests, const ReplayLimits& limits) {
  std::uint64_t peak = 0;
  for (const RequestDevice& device : requests.devices) {
    peak = std::max(peak, store.devices[device.index].peak_reserved_bytes.value_or(0));
  }
  const std::uint64_t plenty = std::clamp(std::min(peak, kMaxPlenty) * kPlentyForPeak, kMinPlenty, kMaxPlenty);
  PhantomOptions options;
  options.gpu = gpu_profiles().front();
  options.gpu.context_bytes = 0;  // the limit applies to the allocator alone
  options.devices = static_cast<int>(limits.bytes.size());
  for (const auto& limit : limits.bytes) options.memory_bytes = std::max(options.memory_bytes, limit.value_or(plenty));
  if (limits.by_fraction) options.memory_bytes *= 2;
  return options;
}

Json fractions(const ReplayLimits& limits, std::uint64_t memory) {
  Json shares = Json::array();
  for (const auto& limit : limits.bytes) {
    const bool needed = limit && (limits.by_fraction || *limit != memory);
    shares.push_back(needed ? Json(fraction_of(*limit, memory)) : Json(nullptr));
  }
  return shares;
}

std::optional<std::uint64_t> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

AllocatorState state_in(const Json& object) {
  return {number_at(object, "allocated_bytes"), number_at(object, "reserved_bytes"),
          number_at(object, "largest_free_bytes"), number_at(object, "free_count")};
}

AllocatorOutcome outcome_in(const Json& end, const Json& peak) {
  AllocatorOutcome outcome;
  outcome.peak_allocated = number_at(end, "peak_allocated_bytes").value_or(0);
  outcome.peak_reserved = number_at(end, "peak_reserved_bytes").value_or(0);
  outcome.peak_active = number_at(end, "peak_active_bytes");
  outcome.peak_inactive_split = number_at(end, "peak_inactive_split_bytes");
  outcome.retries = number_at(end, "retry_count");
  outcome.segments = number_at(end, "segment_count");
  outcome.end_segments = number_at(end, "end_segment_count");
  if (peak.is_object()) outcome.at_peak = state_in(peak);
  outcome.at_end = state_in(end);
  return outcome;
}

Result<SimulatedSettings> read_result(const fs::path& path, const std::string& settings, const Store& store,
                                      const Requests& requests) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return Error{"its process was killed"};
  if (json.contains("error")) return Error{json["error"].get<std::string>()};
  SimulatedSettings run;
  run.settings = settings;
  for (std::size_t index = 0; index < requests.devices.size(); ++index) {
    run.devices.push_back(outcome_in(json["ends"][index], json["peaks"][index]));
  }
  run.passed_failures = number_at(json, "passed_failures").value_or(0);
  if (const auto pair = number_at(json, "failed_pair")) run.out_of_memory_ns = time_of_pair(store, requests, *pair);
  return run;
}

fs::path result_path(const std::string& folder, std::size_t index) {
  return fs::path(folder) / fmt::format("result.{}", index);
}

// Runs it with its output in the file `log`, and reports progress until it ends.
Result<ProcessEnd> run_script(const PhantomRun& phantom, const InterpreterFacts& python, const std::string& log,
                              StopSignals& signals, const std::function<void()>& tick) {
  const std::string& folder = phantom.folder();
  const auto output = open_output(log);
  if (!output) return output.error();
  std::vector<std::string> environment = phantom.environment();
  environment.push_back(preload_variable(fmt::format("{}", fmt::join(phantom.preload(), ":"))));
  auto process =
      BackgroundProcess::start({{python.executable, "-B", folder + "/replay.py", folder}, std::move(environment)},
                               {output->get(), output->get()});
  if (!process) return process.error();
  while (!signals.stopped()) {
    const auto end = process->ended();
    tick();
    if (end) return *end;
    signals.wait(std::chrono::milliseconds(100));
  }
  return Error{"interrupted"};
}

Result<void> replay(const PhantomRun& phantom, const InterpreterFacts& python, std::size_t count, StopSignals& signals,
                    const Progress& progress) {
  const std::string& folder = phantom.folder();
  const std::string log = folder + "/log";
  const auto end = run_script(phantom, python, log, signals, [&] {
    std::size_t done = 0;
    for (std::size_t index = 0; index < count; ++index) done += std::size_t{fs::exists(result_path(folder, index))};
    if (progress) progress(done, count);
  });
  if (!end) return end.error();
  if (end->exit_code == 0) return {};
  if (end->ending_signal) {
    return Error{fmt::format("{} was ended by signal {}", python.executable, *end->ending_signal)};
  }
  std::string last;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) last = line.empty() ? last : line;
  return Error{fmt::format("PyTorch {} of {} could not replay: {}", python.torch_version, python.executable,
                           last.empty() ? fmt::format("exit code {}", end->exit_code.value_or(-1)) : last)};
}

}  // namespace

Result<std::vector<Result<SimulatedSettings>>> replay_with_pytorch(const Store& store, const Requests& requests,
                                                                   const std::vector<std::string>& settings,
                                                                   const ReplayLimits& limits,
                                                                   const InterpreterFacts& python,
                                                                   const Progress& progress) {
  StopSignals signals;  // until the phantom's folder is removed
  const PhantomOptions options = phantom_options(store, requests, limits);
  const auto phantom = PhantomRun::create(python, options);
  if (!phantom) return phantom.error();
  const std::string& folder = phantom->folder();
  if (auto written = write_request_file(store, requests, folder + "/requests"); !written) return written.error();
  std::ofstream(folder + "/replay.py") << kReplayScript;
  const Json jobs = {{"settings", settings},
                     {"fractions", fractions(limits, options.memory_bytes)},
                     {"parallel", std::max(1U, std::thread::hardware_concurrency())}};
  std::ofstream(folder + "/jobs") << jobs.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (auto done = replay(*phantom, python, settings.size(), signals, progress); !done) return done.error();
  std::vector<Result<SimulatedSettings>> results;
  for (std::size_t index = 0; index < settings.size(); ++index) {
    results.push_back(read_result(result_path(folder, index), settings[index], store, requests));
  }
  return results;
}

namespace {

enum : std::int64_t {
  kFree = -1,
  kFailed = -2,
  kEmptyCache = -3,
  kDevice = -4,
  kStream = -5,
  kPool = -6,
  kMoment = -7,
  kPoolReleased = -8
};

std::int64_t size_of(const Request& request) {
  return static_cast<std::int64_t>(std::min(request.size, kMaxRequestBytes));
}

// Calls put(operand, second) for each pair that a request becomes, and keeps the device, stream and pool that were set.
class Pairs {
 public:
  explicit Pairs(const Store& store) : store_(store) {}

  template <typename Put>
  void add(const Request& request, const Put& put) {
    using Kind = Request::Kind;
    if (request.kind == Kind::moment) return put(std::int64_t{request.device}, kMoment);
    if (request.kind == Kind::free) return put(std::int64_t{request.slot}, kFree);
    set(device_, request.device, kDevice, put);
    if (request.kind == Kind::pool_released) return put(std::int64_t{request.pool}, kPoolReleased);
    if (request.kind == Kind::empty_cache) return put(std::int64_t{0}, kEmptyCache);
    set(stream_, stream_of(request), kStream, put);
    set(pool_, request.pool, kPool, put);
    if (request.kind == Kind::failed) return put(size_of(request), kFailed);
    put(std::int64_t{request.slot}, size_of(request));
  }

 private:
  // Only distinguishes streams: none is created.
  [[nodiscard]] std::int64_t stream_of(const Request& request) const {
    const bool is_default = request.stream >= store_.streams.size() || store_.streams[request.stream] == 0;
    return is_default ? 0 : std::int64_t{request.stream} + 1;
  }
  template <typename Put>
  static void set(std::int64_t& current, std::int64_t wanted, std::int64_t operation, const Put& put) {
    if (current != wanted) put(wanted, operation);
    current = wanted;
  }

  const Store& store_;
  std::int64_t device_ = 0;
  std::int64_t stream_ = 0;
  std::int64_t pool_ = 0;
};

void write_number(std::ofstream& file, std::uint64_t number) {
  std::array<char, 8> bytes{};
  for (std::size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<char>(number >> (8 * index));
  file.write(bytes.data(), bytes.size());
}

}  // namespace

Result<void> write_request_file(const Store& store, const Requests& requests, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file.write("TMREQS1\n", 8);
  write_number(file, requests.slots);
  Pairs pairs(store);
  visit_requests(store, requests, [&](const Request& request) {
    pairs.add(request, [&](std::int64_t operand, std::int64_t second) {
      write_number(file, static_cast<std::uint64_t>(operand));
      write_number(file, static_cast<std::uint64_t>(second));
    });
    return file.good();
  });
  file.close();
  if (file) return {};
  return Error{fmt::format("{}: cannot be written: {}; set TMPDIR to a folder with room", path, std::strerror(errno))};
}

std::optional<std::uint64_t> time_of_pair(const Store& store, const Requests& requests, std::uint64_t pair) {
  std::optional<std::uint64_t> found;
  std::uint64_t next = 0;
  Pairs pairs(store);
  visit_requests(store, requests, [&](const Request& request) {
    pairs.add(request, [&](std::int64_t, std::int64_t) {
      if (next++ == pair) found = request.time_ns;
    });
    return !found;
  });
  return found;
}

}  // namespace tidemark
