#include "recorded.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace tidemark::testing {
namespace {

using Json = nlohmann::json;

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Libraries between the driver and the owner of the memory.
bool is_between(const std::string& library) {
  return library.starts_with("libcuda.so") || library.starts_with("libcudart.so") || library.starts_with("libcupti.so");
}

/// Names of the modules of a recording's stacks.
class Owners {
 public:
  void take(const Json& line) {
    if (line.contains("string")) strings_.push_back(line["string"]["text"]);
    if (line.contains("module")) modules_.push_back(file_name(strings_.at(line["module"]["path"])));
    if (line.contains("location")) locations_.push_back(module_of(line["location"]));
    if (line.contains("stack")) stacks_.push_back({number(line["stack"]["parent"]), line["stack"]["location"]});
  }

  [[nodiscard]] std::string owner(const Json& stack) const {
    for (std::optional<std::size_t> at = number(stack); at; at = stacks_.at(*at).parent) {
      const std::string& library = locations_.at(stacks_.at(*at).location);
      if (!library.empty() && !is_between(library)) return library;
    }
    return {};
  }

 private:
  struct Frame {
    std::optional<std::size_t> parent;
    std::size_t location;
  };

  static std::optional<std::size_t> number(const Json& value) {
    return value.is_null() ? std::nullopt : std::optional<std::size_t>(value.get<std::size_t>());
  }
  std::string module_of(const Json& location) const {
    if (location["kind"] != "native" || location["module"].is_null()) return {};
    return modules_.at(location["module"]);
  }

  std::vector<std::string> strings_, modules_, locations_;
  std::vector<Frame> stacks_;
};

bool is_of_the_driver(const std::string& device) {
  return device.starts_with("cuda-");
}

}  // namespace

constexpr std::int64_t kWorkspaceBytes = 32 << 20;  ///< libraries.h

void PrintTo(const Change& change, std::ostream* out) {
  *out << change.account << " " << change.bytes << " " << change.owner << " tid " << change.tid;
}

std::vector<Change> said_changes(const std::string& log) {
  std::vector<Change> changes;
  std::ifstream lines(log);
  std::tuple<std::int64_t, std::uint64_t> last;
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text);
    if (!line.contains("account")) continue;
    const std::tuple<std::int64_t, std::uint64_t> call(line["pid"], line["call"]);
    const std::int64_t bytes = line["change"];
    if (call == std::exchange(last, call) && changes.back().account == line["account"]) {
      changes.back().bytes += bytes;
      continue;
    }
    std::string owner = bytes > 0 ? line["caller"] : "";
    if (owner == "libtidemark_preload.so") owner = "libc10_cuda.so";  // it has Tidemark's functions for the driver's
    if (owner == "libcudart.so.13") owner = bytes == kWorkspaceBytes ? "libcublasLt.so.13" : "libc10_cuda.so";
    changes.push_back({line["pid"], line["tid"], line["account"], bytes, owner});
  }
  return changes;
}

DriverRecording driver_recording(const std::string& path) {
  DriverRecording recording;
  Owners owners;
  std::vector<std::int64_t> tids;
  std::uint64_t last_time = 0;
  const std::string command = TIDEMARK_PROGRAM " dump --format json " + path + " >" + path + ".jsonl";
  if (std::system(command.c_str()) != 0) return recording;
  std::ifstream lines(path + ".jsonl");
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text);
    owners.take(line);
    if (line.contains("process")) recording.pid = line["process"]["pid"];
    if (line.contains("thread")) tids.push_back(line["thread"]["tid"]);
    if (line.contains("missing")) {
      recording.missing[line["missing"]["kind"]] += line["missing"]["count"].get<std::uint64_t>();
      recording.reasons.push_back(line["missing"].value("text", ""));
    }
    if (!line.contains("event") || !line["event"].contains("device")) continue;
    const Json& event = line["event"];
    if (!is_of_the_driver(event["device"])) continue;
    const std::uint64_t time = event["time_ns"];
    recording.in_time_order = recording.in_time_order && time >= last_time;
    if (event["kind"] == "out_of_memory") ++recording.failures;
    if (event["kind"] != "allocate" && event["kind"] != "free") continue;
    const bool taken = event["kind"] == "allocate";
    if (event["size"].is_null() || event["size"] == 0) {
      ++recording.unsized_frees;
      continue;
    }
    const std::int64_t bytes = (taken ? 1 : -1) * event["size"].get<std::int64_t>();
    const Change change{recording.pid, tids.at(event["thread"]), event["device"], bytes,
                        taken ? owners.owner(event["stack"]) : ""};
    std::vector<Change>& changes = recording.changes;
    const bool same_call = !changes.empty() && time == last_time && changes.back().tid == change.tid &&
                           changes.back().account == change.account;
    last_time = time;
    if (!same_call) {
      changes.push_back(change);
      continue;
    }
    changes.back().bytes += bytes;  // in one call of the driver: a pool's piece that became smaller
    if (changes.back().bytes < 0) changes.back().owner.clear();
  }
  return recording;
}

std::map<std::string, Level> levels(const std::vector<Change>& changes) {
  std::map<std::string, Level> levels;
  for (const Change& change : changes) {
    Level& level = levels[change.account];
    level.now += change.bytes;
    level.peak = std::max(level.peak, level.now);
  }
  return levels;
}

}  // namespace tidemark::testing
