#include "inprocess/recording/own_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "inprocess/recording/control_library.h"

namespace tidemark {
namespace {

// The process that is recording itself; 0: none. A forked child has another pid.
std::atomic<pid_t> recording_pid = 0;

Result<void> load_control_library(const std::string& path) {
  if (control_library() != nullptr) return {};
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr && find_control_library(handle)) return {};
  const char* const why = ::dlerror();
  return Error{fmt::format("the library that records cannot be loaded here: {}",
                           why != nullptr ? why : "it is not the library of this version of Tidemark")};
}

}  // namespace

void find_own_control_library() {
  if (control_library() != nullptr || find_control_library(RTLD_DEFAULT)) return;
  const char* const library = std::getenv("TIDEMARK_LIBRARY");
  if (library == nullptr || std::getenv("TIDEMARK_SOCKET") == nullptr) return;
  if (load_control_library(library)) control_library()->attach();
}

bool OwnRecording::started() const {
  return pid_ != 0 && pid_ == ::getpid();
}

Result<void> OwnRecording::start(const OwnRecordingOptions& options) {
  const pid_t own = ::getpid();
  pid_t recording = recording_pid.load();
  if (recording == own || !recording_pid.compare_exchange_strong(recording, own)) {
    return Error{"this process is being recorded already, by another Profiler: stop that one first"};
  }
  auto begun = begin(options);
  if (!begun) {
    recording_pid = 0;
    return begun;
  }
  pid_ = own;
  path_ = options.path;
  return {};
}

Result<void> OwnRecording::begin(const OwnRecordingOptions& options) {
  range_.clear();
  recorder_.reset();
  find_own_control_library();
  if (control_library() != nullptr && control_library()->is_recording() != 0) {
    range_ = std::filesystem::path(options.path).stem().string();
    control_library()->range_begin(range_.c_str());
    return {};
  }
  std::vector<std::string> arguments = {"--output", options.path};
  arguments.insert(arguments.end(), options.options.begin(), options.options.end());
  auto recorder = RecorderProcess::start(options.program, arguments);
  if (!recorder) return recorder.error();
  if (auto loaded = load_control_library(recorder->library()); !loaded) {
    static_cast<void>(recorder->end());
    return loaded;
  }
  std::vector<const char*> settings;
  for (const std::string& setting : recorder->settings()) settings.push_back(setting.c_str());
  settings.push_back(nullptr);
  if (control_library()->connect(settings.data()) == 0) {
    const std::string why = recorder->end().messages;
    return Error{why.empty() ? "the recorder cannot be reached; stderr says why" : why};
  }
  if (auto connected = recorder->connected(); !connected) {
    control_library()->disconnect();
    return connected.error();
  }
  recorder_ = std::move(*recorder);
  return {};
}

Result<std::vector<OwnRecordedFile>> OwnRecording::stop() {
  if (!started()) return std::vector<OwnRecordedFile>();
  auto ended = end();
  pid_ = 0;
  recording_pid = 0;
  return ended;
}

Result<std::vector<OwnRecordedFile>> OwnRecording::end() {
  if (!recorder_) {
    if (!range_.empty()) control_library()->range_end(range_.c_str());
    return std::vector<OwnRecordedFile>();
  }
  control_library()->disconnect();
  RecorderEnd ended = recorder_->end();
  recorder_.reset();
  if (!ended.finished) {
    return Error{fmt::format("{}: the recorder was killed; what it had written until then can be read", path_)};
  }
  const auto failed = [](const OwnRecordedFile& file) { return file.failed; };
  if (std::any_of(ended.files.begin(), ended.files.end(), failed)) {
    return Error{fmt::format("{}: the recording is not complete: {}", path_, ended.messages)};
  }
  const std::int64_t own = ::getpid();
  std::stable_partition(ended.files.begin(), ended.files.end(),
                        [own](const OwnRecordedFile& file) { return file.pid == own; });
  return std::move(ended.files);
}

}  // namespace tidemark
