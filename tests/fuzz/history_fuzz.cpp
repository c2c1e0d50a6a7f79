// Fuzz target of history files: for any bytes, reading terminates and does not change them, errors name the file, and
// accepted content is within bounds. A monitor that continues the file does not write to one that cannot be read; a
// readable one is still readable afterwards.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/require.h"
#include "publish/history/history.h"
#include "publish/history/history_writer.h"
#include "query/results/machine_results.h"
#include "report/common/text.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

constexpr std::int64_t kNowMs = 1'800'000'000'000;
constexpr std::size_t kWritesOnceIn = 16;  // inputs: the writer starts a thread and syncs

/// Removed at the end of the process, with SQLite's files beside it.
class File {
 public:
  File()
      : folder_(place() / ("tidemark-history-fuzz-" + std::to_string(::getpid()))), path_((folder_ / "h.db").string()) {
    std::filesystem::create_directory(folder_);
  }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  /// In a memory file system if there is one: SQLite syncs its writes to disk.
  static std::filesystem::path place() {
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
  }
  void write(const std::string& bytes) {
    for (const char* beside : {"-wal", "-shm", "-journal"}) std::filesystem::remove(path_ + beside);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  [[nodiscard]] std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

Result<History> read(const std::string& path) {
  return read_history(path, {.since_ms = std::nullopt, .until_ms = kNowMs + 1'000'000});
}

void check(const History& history) {
  const HistoryQuery defaults{};
  for (const HistoryDevice& device : history.devices) {
    require(device.points.size() <= static_cast<std::size_t>(defaults.most_points) + 1, "points are bounded");
    require(device.processes.size() <= kMaxHistoryProcesses, "processes are bounded");
    require(device.samples > 0, "devices have samples");
  }
  require(history.risks.size() <= kMaxHistoryRisks, "changes of risk are bounded");
  require(!to_json(history).empty() && !to_text(history, {}).empty() && !to_csv(history).empty(), "it can be printed");
  (void)as_state(history);
}

void go_on(const std::string& path) {
  MachineState state;
  state.now_wall_ns = static_cast<std::uint64_t>(kNowMs) * 1'000'000;
  WatchedDevice& device = state.devices.emplace_back();
  device.key = "0";
  device.info.uuid = "GPU-1";
  device.used.add(0, 1);
  HistoryWriter(HistoryOptions{path, std::chrono::hours(24), [](const std::string&) {}}).add(state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static File file;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  file.write(bytes);
  const auto history = read(file.path());
  require(history.ok() || history.error().message.starts_with(file.path()), "an error names the file");
  require(file.read() == bytes, "reading leaves the file as it is");
  if (history) check(*history);
  std::size_t sum = 0;
  for (std::size_t n = 0; n < size; ++n) sum += data[n];
  if (sum % kWritesOnceIn != 0 || size == 0) return 0;
  go_on(file.path());
  if (history) {
    require(read(file.path()).ok(), "what can be read stays so when it goes on");
  } else {
    require(file.read() == bytes, "what cannot be read is left as it is");
  }
  return 0;
}
