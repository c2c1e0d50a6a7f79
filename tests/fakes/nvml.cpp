// A library that replaces the driver's libnvidia-ml.so.1: devices, values and failures come from a script, the JSON
// file in the variable FAKES_NVML (all fields optional):
//
//   {"init": 0, "driver": "580.1", "cuda": 13000, "devices": [{
//      "name", "uuid", "bus": 101, "memory": {"total", "reserved", "used"}, "utilization": 37, "temperature": 41,
//      "power": 71500, "grows": 1000,                   bytes that are used more each second, since the first reading
//      "processes": [{"pid": 12 | "caller" | "parent", "bytes": 5, "graphics": false,
//                     "ends": true}],                 listed while it exists; else always
//      "returns": {"nvmlDeviceGetPowerUsage": 3},      results of functions
//      "lost_when": "/path",                            GPU_IS_LOST while this file exists
//      "driver_log": "/path", "driver_index": 0, "context": 500,    see below
//      "mig": [{…a device…}]}]}                        instances; null if none is set up
//
// "driver_log" is the log of the stand-in for libcuda (driver/books.h): its live processes are listed on the device,
// with their memory on its device "driver_index" and "context" bytes each, and all of that counts as used.
//
// "caller" is the process that loaded the library, "parent" its parent. With FAKES_NVML_OLD it has only what drivers
// before 2020 had.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "collect/machine/nvml_api.h"

namespace {

using nlohmann::json;
using namespace tidemark::nvml;

struct Fake {
  json device;
  unsigned index = 0;
  std::vector<Fake> instances;
};

json script;              // NOLINT: the library's state, as in the real one
std::vector<Fake> fakes;  // NOLINT

constexpr Return kInvalidArgument = static_cast<Return>(2);

Fake* fake(Device device) {
  return reinterpret_cast<Fake*>(device);
}
Device handle(Fake& fake) {
  return reinterpret_cast<Device>(&fake);
}

/// The result of `function` for the device in the script.
Return answer(Device device, const char* function) {
  if (device == nullptr) return kInvalidArgument;
  const json& facts = fake(device)->device;
  if (facts.contains("lost_when") && ::access(facts["lost_when"].get<std::string>().c_str(), F_OK) == 0) {
    return kGpuIsLost;
  }
  const json returns = facts.value("returns", json::object());
  return returns.contains(function) ? static_cast<Return>(returns[function].get<int>()) : kSuccess;
}

Return text(const std::string& value, char* out, unsigned size) {
  if (value.size() + 1 > size) return kInsufficientSize;
  std::memcpy(out, value.c_str(), value.size() + 1);
  return kSuccess;
}

unsigned long long memory(Device device, const char* part) {
  return fake(device)->device.value("memory", json::object()).value(part, 0ULL);
}

/// The part read of a log of the stand-in for libcuda: changes summed by account and process.
struct DriverLog {
  std::streamoff read = 0;
  std::map<std::pair<std::string, unsigned>, long long> bytes;
};

/// Bytes of the device by process, from the stand-in for libcuda. Only new lines are read: a log may be long.
std::map<unsigned, unsigned long long> driver_processes(Device device) {
  static std::mutex mutex;
  static std::map<std::string, DriverLog> logs;
  const json& facts = fake(device)->device;
  const std::string path = facts.value("driver_log", "");
  const std::string account = "cuda-driver:" + std::to_string(facts.value("driver_index", fake(device)->index));
  const std::lock_guard lock(mutex);
  DriverLog& known = logs[path];
  std::ifstream log(path);
  log.seekg(known.read);
  for (std::string text; std::getline(log, text) && !log.eof();) {  // the last line may be half written
    const json line = json::parse(text);
    if (line.contains("pid") && line.contains("change")) {
      known.bytes[{line.value("account", ""), line["pid"].get<unsigned>()}] += line["change"].get<long long>();
    }
    known.read = log.tellg();
  }
  std::map<unsigned, unsigned long long> bytes;
  for (const auto& [of, change] : known.bytes) {
    if (of.first != account || ::kill(static_cast<pid_t>(of.second), 0) != 0) continue;
    bytes[of.second] = facts.value("context", 0ULL) + static_cast<unsigned long long>(change);
  }
  return bytes;
}

unsigned long long grown_by(double bytes_per_second) {
  static const auto began = std::chrono::steady_clock::now();
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - began;
  return static_cast<unsigned long long>(bytes_per_second * since.count());
}

unsigned long long used_memory(Device device) {
  unsigned long long used = memory(device, "used") + grown_by(fake(device)->device.value("grows", 0.0));
  for (const auto& [pid, bytes] : driver_processes(device)) used += bytes;
  return used;
}

unsigned number(Device device, const char* field) {
  return fake(device)->device.value(field, 0U);
}

Return read_number(Device device, const char* function, const char* field, unsigned* out) {
  if (const Return code = answer(device, function); code != kSuccess) return code;
  if (!fake(device)->device.contains(field)) return kNotSupported;
  *out = number(device, field);
  return kSuccess;
}

unsigned pid_of(const json& process) {
  if (process["pid"].is_number()) return process["pid"];
  return static_cast<unsigned>(process["pid"] == "caller" ? ::getpid() : ::getppid());
}

template <typename Process>
Return processes(Device device, const char* function, bool graphics, unsigned* count, Process* out) {
  if (const Return code = answer(device, function); code != kSuccess) return code;
  unsigned found = 0;
  json all = fake(device)->device.value("processes", json::array());
  for (const auto& [pid, bytes] : driver_processes(device)) all.push_back({{"pid", pid}, {"bytes", bytes}});
  for (const json& process : all) {
    if (process.value("graphics", false) != graphics) continue;
    if (process.value("ends", false) && ::kill(static_cast<pid_t>(pid_of(process)), 0) != 0) continue;
    if (found < *count) {
      out[found] = {};
      out[found].pid = pid_of(process);
      out[found].used_bytes = process.contains("bytes") ? process["bytes"].get<unsigned long long>() : kNotAvailable;
    }
    ++found;
  }
  const bool fits = found <= *count;
  *count = found;
  return fits ? kSuccess : kInsufficientSize;
}

void add(std::vector<Fake>& to, const json& devices) {
  for (const json& device : devices) {
    Fake& added = to.emplace_back();
    added.device = device;
    added.index = static_cast<unsigned>(to.size() - 1);
    if (!device.is_null()) add(added.instances, device.value("mig", json::array()));
  }
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE Return nvmlInit_v2() {
  const char* path = std::getenv("FAKES_NVML");
  if (path == nullptr) return kDriverNotLoaded;
  script = json::parse(std::ifstream(path));
  fakes.clear();
  add(fakes, script.value("devices", json::array()));
  return static_cast<Return>(script.value("init", 0));
}
FAKE Return nvmlShutdown() {
  return kSuccess;
}
FAKE const char* nvmlErrorString(Return code) {
  return code == kGpuIsLost ? "GPU is lost" : "scripted error";
}
FAKE Return nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return text(script.value("driver", "1.0"), out, size);
}
FAKE Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(fakes.size());
  return kSuccess;
}
FAKE Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* out) {
  if (index >= fakes.size()) return kInvalidArgument;
  if (const Return code = answer(handle(fakes[index]), "nvmlDeviceGetHandleByIndex_v2"); code != kSuccess) return code;
  *out = handle(fakes[index]);
  return kSuccess;
}
FAKE Return nvmlDeviceGetName(Device device, char* out, unsigned size) {
  return text(fake(device)->device.value("name", "Fake GPU"), out, size);
}
FAKE Return nvmlDeviceGetUUID(Device device, char* out, unsigned size) {
  return text(fake(device)->device.value("uuid", ""), out, size);
}
FAKE Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* out) {
  *out = {};
  out->bus = number(device, "bus");
  return kSuccess;
}
FAKE Return nvmlDeviceGetMemoryInfo(Device device, Memory* out) {
  if (const Return code = answer(device, "nvmlDeviceGetMemoryInfo"); code != kSuccess) return code;
  out->total = memory(device, "total");
  out->used = used_memory(device) + memory(device, "reserved");
  out->free = out->total - out->used;
  return kSuccess;
}
FAKE Return nvmlDeviceGetUtilizationRates(Device device, Utilization* out) {
  return read_number(device, "nvmlDeviceGetUtilizationRates", "utilization", &out->gpu);
}
FAKE Return nvmlDeviceGetTemperature(Device device, int, unsigned* out) {
  return read_number(device, "nvmlDeviceGetTemperature", "temperature", out);
}
FAKE Return nvmlDeviceGetPowerUsage(Device device, unsigned* out) {
  return read_number(device, "nvmlDeviceGetPowerUsage", "power", out);
}
FAKE Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, ProcessV1* out) {
  return processes(device, "nvmlDeviceGetComputeRunningProcesses", false, count, out);
}
FAKE Return nvmlDeviceGetGraphicsRunningProcesses(Device device, unsigned* count, ProcessV1* out) {
  return processes(device, "nvmlDeviceGetGraphicsRunningProcesses", true, count, out);
}

#ifndef FAKES_NVML_OLD
constexpr Return kNotFound = static_cast<Return>(6);

FAKE Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = script.value("cuda", 13000);
  return kSuccess;
}
FAKE Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* out) {
  if (out->version != kMemoryV2) return static_cast<Return>(25);  // ARGUMENT_VERSION_MISMATCH
  if (const Return code = answer(device, "nvmlDeviceGetMemoryInfo_v2"); code != kSuccess) return code;
  out->total = memory(device, "total");
  out->reserved = memory(device, "reserved");
  out->used = used_memory(device);
  out->free = out->total - out->used - out->reserved;
  return kSuccess;
}
FAKE Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, Process* out) {
  return processes(device, "nvmlDeviceGetComputeRunningProcesses_v3", false, count, out);
}
FAKE Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count, Process* out) {
  return processes(device, "nvmlDeviceGetGraphicsRunningProcesses_v3", true, count, out);
}
FAKE Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  if (const Return code = answer(device, "nvmlDeviceGetMigMode"); code != kSuccess) return code;
  if (!fake(device)->device.contains("mig")) return kNotSupported;
  *current = *pending = kMigEnabled;
  return kSuccess;
}
FAKE Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  *count = static_cast<unsigned>(fake(device)->instances.size());
  return kSuccess;
}
FAKE Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* out) {
  std::vector<Fake>& instances = fake(device)->instances;
  if (index >= instances.size() || instances[index].device.is_null()) return kNotFound;
  *out = handle(instances[index]);
  return kSuccess;
}
#endif
