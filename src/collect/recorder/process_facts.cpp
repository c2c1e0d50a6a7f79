#include "collect/recorder/process_facts.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace tidemark {
namespace {

unsigned long descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

std::string command_line(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string text;
  for (char byte = 0; file.get(byte);) text += byte;  // stops early if the process ends meanwhile
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::string hostname() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string torch_version(const std::string& library) {
  const std::filesystem::path path(library);
  std::ifstream file(path.parent_path().parent_path() / "version.py");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("__version__", 0) != 0) continue;
    const auto first = line.find_first_of("'\"");
    const auto last = line.find_last_of("'\"");
    if (first != std::string::npos && last > first) return line.substr(first + 1, last - first - 1);
  }
  const std::string name = path.filename().string();
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).filename().string();
  for (const std::string& candidate : {real, name}) {
    const auto at = candidate.find(".so.");
    if (at != std::string::npos) return candidate.substr(at + 4);
  }
  return "";
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

unsigned long descriptors_after(int newest) {
  const unsigned long limit = descriptor_limit();
  const auto used = static_cast<unsigned long>(newest) + 1;
  return limit > used ? limit - used : 0;
}

std::string few_descriptors() {
  return fmt::format("too few file descriptors (ulimit -n {})", descriptor_limit());
}

}  // namespace tidemark
