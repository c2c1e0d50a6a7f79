// Fuzz target of small untrusted texts: messages of recorders, answers of programs about the holders of their memory,
// lines of the kernel's log, files that describe GPUs, settings of the allocator, and the trials of a sweep. For any
// bytes, reading terminates, and written values read back the same.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "allocator/settings_text.h"
#include "collect/machine/kernel_log.h"
#include "collect/recorder/live/live_message.h"
#include "fuzz/require.h"
#include "monitor/object_question.h"
#include "plan/gpu_profiles.h"
#include "sweep/kept_trials.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;

constexpr std::size_t kTrialsOnceIn = 8;  // inputs: files are synced to disk

void read_live_message(const std::string& text) {
  const LiveDumps dumps = parse_live_dumps(text);
  require(dumps.dumps.size() <= LiveDumps::kMaxDumps, "dumps are bounded");
  require(live_message({}, dumps).size() <= kMaxLiveBytes, "a message with dumps is no longer than allowed");
  static_cast<void>(parse_dump_request(text));
  const auto recordings = parse_live_message(text);
  if (!recordings) return;
  const std::string message = live_message(*recordings);
  require(message.size() <= kMaxLiveBytes, "a message is no longer than allowed");
  const auto again = parse_live_message(message);
  require(again.has_value() && again->size() <= recordings->size(), "a message that is written can be read");
}

void read_answer(const std::string& text) {
  const auto answer = parse_object_answer(text);
  require(!answer || answer->storages.size() <= kMaxAnswerBytes, "an answer is bounded");
}

void read_gpus(const std::string& text) {
  const auto gpus = parse_gpu_profiles(text, "gpu.txt");
  require(gpus.ok() || gpus.error().message.starts_with("gpu.txt"), "an error names the file");
  if (!gpus) return;
  for (const GpuProfile& gpu : *gpus) {
    const auto again = parse_gpu_profiles(gpu_profile_text(gpu), "gpu.txt");
    require(again.ok() && again->size() == 1, "what is written of a GPU can be read");
    require(again->front().name == gpu.name && again->front().memory_bytes == gpu.memory_bytes &&
                again->front().context_bytes == gpu.context_bytes,
            "and is the same");
  }
}

void read_settings(const std::string& text) {
  const auto settings = parse_settings(text);
  if (!settings) return;
  const auto again = parse_settings(settings_text(*settings));
  require(again.ok() && *again == *settings, "settings that are written can be read");
  (void)allocator_settings(placement_settings(*settings));
  (void)allocator_settings(*settings);
}

void read_trials(const std::string& text) {
  static const std::string folder =
      (std::filesystem::temp_directory_path() / ("tidemark-texts-fuzz-" + std::to_string(::getpid()))).string();
  const std::string file = folder + "/trials.jsonl";
  const std::string whole = "common\n" + text;
  std::filesystem::create_directories(folder);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << whole;
  std::size_t read = 0;
  if (auto kept = KeptTrials::open(folder, "common"); !kept) {
    require(std::filesystem::file_size(file) == whole.size(), "a file with a line that is no trial stays as it is");
  } else {
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    read = kept->trials().size();
    require(read == lines, "each line is a trial");
    const std::string next = kept->new_folder();
    for (const KeptTrial& trial : kept->trials()) require(trial.folder != next, "a folder is of one trial");
    if (read > 0) require(kept->append(kept->trials().back()).ok(), "a trial is appended");
    kept = Error{"closed"};
    const auto again = KeptTrials::open(folder, "common");
    require(again.ok() && again->trials().size() == read + (read > 0 ? 1 : 0), "each whole trial is there again");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_live_message(text);
  read_answer(text);
  const auto kill = parse_kill(text);
  require(!kill || kill->pid >= 0, "a process that was killed has a number");
  read_gpus(text);
  read_settings(text);
  std::size_t sum = 0;
  for (std::size_t n = 0; n < size; ++n) sum += data[n];
  if (sum % kTrialsOnceIn == 0) read_trials(text);
  return 0;
}
