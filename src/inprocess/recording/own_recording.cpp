#include "inprocess/recording/own_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "inprocess/recording/control_library.h"
#include "launch/background_process.h"

namespace tidemark {

namespace {

// The process that records itself; 0: none. A forked child has another pid.
std::atomic<pid_t> recording_pid = 0;

Result<void> load_control_library(const std::string& path) {
  if (control_library() != nullptr) return {};
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr && find_control_library(handle)) return {};
  const char* const why = ::dlerror();
  return Error{fmt::format("the library that records cannot be loaded here: {}",
                           why != nullptr ? why : "it is not the library of this version of Tidemark")};
}

using Json = nlohmann::json;

struct Pipe {
  ScopedFd reading;
  ScopedFd writing;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{"the recorder cannot be started: " + std::generic_category().message(errno)};
  }
  return Pipe{ScopedFd(ends[0]), ScopedFd(ends[1])};
}

// The program's descriptors 0 to 2 may be replaced only in the child.
void become_standard(const Pipe& in, const Pipe& out, const Pipe& err) {
  // Move all three above 2 first, so that none is overwritten.
  const int source_in = ::fcntl(in.reading.get(), F_DUPFD, 3);
  const int source_out = ::fcntl(out.writing.get(), F_DUPFD, 3);
  const int source_err = ::fcntl(err.writing.get(), F_DUPFD, 3);
  ::dup2(source_in, STDIN_FILENO);
  ::dup2(source_out, STDOUT_FILENO);
  ::dup2(source_err, STDERR_FILENO);
  ::close(source_in);
  ::close(source_out);
  ::close(source_err);
  // The recorder must not keep the program's descriptors open. (Linux 5.11; CLOSE_RANGE_CLOEXEC is 4.)
  ::syscall(SYS_close_range, 3, ~0U, 4);
  if (::chdir("/") != 0) return;
}

// The first process exits at once, so that the recorder is not a child of this one.
void wait_for(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Json> parse(const std::string& line) {
  Json heard = Json::parse(line, nullptr, false);
  if (!heard.is_object()) return Error{"the recorder said what is not understood: it is of another version"};
  return heard;
}

std::vector<OwnRecordedFile> files_of(const Json& list) {
  std::vector<OwnRecordedFile> files;
  for (const Json& file : list) {
    files.push_back({file.value("path", ""), file.value("pid", std::int64_t{-1}),
                     file.value("events", std::uint64_t{0}), file.value("dropped", std::uint64_t{0}),
                     file.value("bytes", std::uint64_t{0}), file.value("failed", false)});
  }
  return files;
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

Result<RecorderProcess> RecorderProcess::start(const std::string& program, const std::vector<std::string>& options) {
  auto in = make_pipe();
  auto out = make_pipe();
  auto err = make_pipe();
  for (const auto* pipe : {&in, &out, &err}) {
    if (!*pipe) return pipe->error();
  }
  Command command;
  command.words = {program, "recorder", "--program", std::to_string(::getpid())};
  command.words.insert(command.words.end(), options.begin(), options.end());
  pid_t first = -1;
  const int error = execute(
      command, [&] { become_standard(*in, *out, *err); }, first);
  if (error != 0) {
    return Error{
        fmt::format("the recorder cannot be started: {}: {}", program, std::generic_category().message(error))};
  }
  RecorderProcess recorder;
  recorder.to_ = std::move(in->writing);
  recorder.from_ = std::move(out->reading);
  recorder.messages_ = std::move(err->reading);
  out->writing.reset();
  err->writing.reset();
  wait_for(first);
  const auto line = recorder.hear();
  const auto heard = line ? parse(*line) : Result<Json>(Error{""});
  if (!heard || !heard->contains("environment")) {
    const std::string why = recorder.read_messages();
    if (!why.empty()) return Error{why};
    return Error{line ? heard.error().message : fmt::format("the recorder ended before it began: {}", program)};
  }
  recorder.pid_ = heard->value("pid", -1);
  for (const Json& setting : (*heard)["environment"]) recorder.settings_.push_back(setting.get<std::string>());
  return recorder;
}

std::string RecorderProcess::library() const {
  constexpr std::string_view kName = "TIDEMARK_LIBRARY=";
  for (const std::string& setting : settings_) {
    if (setting.compare(0, kName.size(), kName) == 0) return setting.substr(kName.size());
  }
  return "";
}

Result<std::string> RecorderProcess::connected() {
  const auto line = hear();
  if (line) {
    const auto heard = parse(*line);
    if (heard && heard->contains("recording")) return (*heard)["recording"].get<std::string>();
    if (heard && heard->contains("error")) return Error{(*heard)["error"].get<std::string>()};
  }
  const std::string why = end().messages;
  return Error{why.empty() ? "the recorder ended before it began" : why};
}

RecorderEnd RecorderProcess::end() {
  // A word, because a forked child may hold the other end open.
  constexpr std::string_view kStop = "stop\n";
  sigset_t broken;
  sigset_t before;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  if (to_ && ::write(to_.get(), kStop.data(), kStop.size()) < 0) {
    const timespec now{0, 0};
    while (::sigtimedwait(&broken, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  to_.reset();
  RecorderEnd ended;
  while (const auto line = hear()) {
    const auto heard = parse(*line);
    if (!heard || !heard->contains("files")) continue;
    ended.files = files_of((*heard)["files"]);
    ended.finished = true;
  }
  ended.messages = read_messages();
  from_.reset();
  messages_.reset();
  // If this process is the init process of a container, the recorder has become its child.
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  return ended;
}

std::optional<std::string> RecorderProcess::hear() {
  constexpr std::size_t kMaxHeard = std::size_t{1} << 20;
  std::array<char, 4096> part{};
  while (heard_.find('\n') == std::string::npos) {
    const ssize_t got = from_ ? ::read(from_.get(), part.data(), part.size()) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || heard_.size() > kMaxHeard) return std::nullopt;
    heard_.append(part.data(), static_cast<std::size_t>(got));
  }
  const std::size_t end = heard_.find('\n');
  std::string line = heard_.substr(0, end);
  heard_.erase(0, end + 1);
  return line;
}

std::string RecorderProcess::read_messages() const {
  constexpr std::string_view kPrefix = "tidemark: ";
  std::string all;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = messages_ ? ::read(messages_.get(), part.data(), part.size()) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    all.append(part.data(), static_cast<std::size_t>(got));
  }
  std::string joined;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = all.find('\n', begin);
    if (end == std::string::npos) end = all.size();
    std::string line = all.substr(begin, end - begin);
    if (line.compare(0, kPrefix.size(), kPrefix) == 0) line.erase(0, kPrefix.size());
    line = line.substr(0, line.find("; see `tidemark recorder"));
    if (!line.empty()) joined += (joined.empty() ? "" : "; ") + line;
    begin = end + 1;
  }
  return joined;
}

}  // namespace tidemark
