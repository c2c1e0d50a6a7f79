#include <fmt/format.h>
#include <tidemark/profiler.h>

#include <exception>
#include <filesystem>
#include <utility>

#include "base/standard_streams.h"
#include "cpp_api/results.h"
#include "inprocess/recording/control_library.h"
#include "inprocess/recording/own_recording.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
namespace {

// A preloaded library is present when this one is loaded.
const ControlFunctions* control() noexcept {
  static const bool looked = (find_own_control_library(), true);
  static_cast<void>(looked);
  return control_library();
}

std::vector<std::string> arguments_of(const RecordingOptions& options) {
  std::vector<std::string> arguments = {
      "--stacks",          options.stacks,
      "--attribute",       options.attribute ? "on" : "off",
      "--sample-interval", fmt::format("{}ms", options.sample_interval_seconds * 1000)};
  if (!options.samples) arguments.emplace_back("--no-samples");
  if (options.max_bytes) arguments.insert(arguments.end(), {"--max-size", std::to_string(*options.max_bytes)});
  if (options.replace) arguments.emplace_back("--force");
  return arguments;
}

}  // namespace

struct Profiler::Parts {
  std::string path;
  RecordingOptions options;
  OwnRecording recording;
};

Profiler::Profiler(const std::string& path, RecordingOptions options) : parts_(std::make_unique<Parts>()) {
  parts_->path = path;
  parts_->options = std::move(options);
}

Profiler::~Profiler() {
  try {
    const auto ended = parts_->recording.stop();
    if (!ended) say(ended.error().message);
  } catch (const std::exception& error) {  // no memory is left: the recording ends with the process
    say(error.what());
  }
}

void Profiler::start() {
  std::error_code error;
  const std::string path = std::filesystem::absolute(parts_->path, error).string();
  if (parts_->path.empty() || error) throw v1::Error("a recording needs the name of a file");
  check(parts_->recording.start({path, own_program(), arguments_of(parts_->options)}));
  if (parts_->recording.is_range()) {
    say(fmt::format("this program is being recorded already; {} is not written, it is a range of that recording",
                    parts_->path));
  }
}

std::vector<RecordedFile> Profiler::stop() {
  std::vector<RecordedFile> files;
  for (OwnRecordedFile& file : value_or_throw(parts_->recording.stop())) {
    files.push_back({std::move(file.path), file.pid, file.events, file.dropped, file.bytes, file.failed});
  }
  return files;
}

bool Profiler::is_recording() const noexcept {
  return parts_->recording.started();
}

bool is_recording() noexcept {
  return control() != nullptr && control()->is_recording() != 0;
}

void pause() noexcept {
  if (control() != nullptr) control()->pause();
}

void resume() noexcept {
  if (control() != nullptr) control()->resume();
}

void mark(const char* name) noexcept {
  if (control() != nullptr) control()->mark(name);
}

Scope::Scope(const char* name) noexcept : name_(control() != nullptr ? name : nullptr) {
  if (name_ != nullptr) control_library()->range_begin(name_);
}

Scope::~Scope() {
  if (name_ != nullptr) control_library()->range_end(name_);
}

Step::Step() noexcept : Scope("step") {}

}  // namespace v1
}  // namespace tidemark
