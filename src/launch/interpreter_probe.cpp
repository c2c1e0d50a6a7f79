#include "launch/interpreter_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/scoped_fd.h"

extern char** environ;  // NOLINT: POSIX asks for this declaration

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{30};

// find_spec looks for the package and imports nothing of it; its version.py is read as text.
constexpr const char* kQuestions = R"(
import importlib.util, json, os, re, sys, sysconfig
facts = {"executable": sys.executable, "implementation": sys.implementation.name, "version": list(sys.version_info[:3]),
         "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")), "debug": hasattr(sys, "gettotalrefcount")}
spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    facts["torch_folder"] = folder = os.path.dirname(spec.origin)
    text = open(os.path.join(folder, "version.py")).read()
    for name in "__version__", "cuda", "hip":
        found = re.search(r"^%s\s*(?::[^=\n]*)?=\s*['\"](.*)['\"]" % name, text, re.M)
        facts["torch" + name] = found.group(1) if found else ""
print(json.dumps(facts))
)";

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// Looked up in PATH as execvp() does; empty when there is none.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (is_program(candidate)) return candidate.string();
  }
  return "";
}

bool has_pythons_name(const std::string& program) {
  return std::filesystem::path(program).filename().string().rfind("python", 0) == 0;
}

struct Answer {
  std::string text;
  bool in_time = true;
};

/// Reads until the end, or until patience is over.
Answer read_answer(const ScopedFd& fd, pid_t pid) {
  Answer answer;
  const Clock::time_point deadline = Clock::now() + kPatience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) == 0) {
      answer.in_time = false;
      ::kill(pid, SIGKILL);
      break;
    }
    std::array<char, 4096> part{};
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got <= 0) break;
    answer.text.append(part.data(), static_cast<std::size_t>(got));
  }
  ::waitpid(pid, nullptr, 0);
  return answer;
}

Result<Answer> ask(const std::string& interpreter) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{fmt::format("cannot run {}: {}", interpreter, std::strerror(errno))};
  }
  const ScopedFd answers(ends[0]);
  ScopedFd answers_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, answers_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::array<std::string, 3> words = {interpreter, "-c", kQuestions};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, interpreter.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  answers_end.reset();
  if (failed == 0) return read_answer(answers, pid);
  return Error{fmt::format("cannot run {}: {}", interpreter, std::strerror(failed))};
}

}  // namespace

std::optional<std::string> interpreter_of(const std::string& program) {
  const std::string path = find_program(program);
  if (path.empty()) return std::nullopt;
  if (has_pythons_name(path)) return path;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.rfind("#!", 0) != 0) return std::nullopt;
  std::istringstream words(line.substr(2));
  std::string word;
  while (words >> word) {
    if (has_pythons_name(word)) return find_program(word).empty() ? std::nullopt : std::optional(find_program(word));
  }
  return std::nullopt;
}

Result<InterpreterFacts> probe_interpreter(const std::string& interpreter) {
  const auto answer = ask(interpreter);
  if (!answer) return answer.error();
  if (!answer->in_time) return Error{fmt::format("{} did not answer within {} s", interpreter, kPatience.count())};
  const auto json = nlohmann::json::parse(answer->text, nullptr, false);
  if (!json.is_object() || !json.contains("version")) {
    return Error{fmt::format("{} did not report its version; run it by hand to see why", interpreter)};
  }
  InterpreterFacts facts;
  const std::vector<int> version = json.value("version", std::vector<int>{0, 0, 0});
  facts.executable = json.value("executable", "");
  facts.implementation = json.value("implementation", "");
  facts.version = fmt::format("{}", fmt::join(version, "."));
  if (version.size() > 1) facts.layout = static_cast<std::uint16_t>((version[0] & 0xFF) << 8 | (version[1] & 0xFF));
  facts.free_threaded = json.value("free_threaded", false);
  facts.debug = json.value("debug", false);
  facts.torch_folder = json.value("torch_folder", "");
  facts.torch_version = json.value("torch__version__", "");
  facts.torch_cuda = json.value("torchcuda", "");
  facts.torch_hip = json.value("torchhip", "");
  return facts;
}

}  // namespace tidemark
