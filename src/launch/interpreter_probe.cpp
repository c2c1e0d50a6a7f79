#include "launch/interpreter_probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/background_process.h"

namespace tidemark {

extern const char kInterpreterQuestions[];

namespace {

constexpr std::chrono::seconds kPatience{30};

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// Looked up in PATH as execvp() does; empty if there is none.
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

}  // namespace

std::optional<std::string> interpreter_of(const std::string& program) {
  std::string path = find_program(program);
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
  const auto answer = program_output({interpreter, "-c", kInterpreterQuestions}, kPatience);
  if (!answer) return answer.error();
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
